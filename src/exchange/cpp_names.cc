// SPDX-License-Identifier: Apache-2.0
// Names that are identifiers, and yet cannot be declared in a launcher: macros of the headers that it includes (glibc, Linux, the
// compiler's own), and names that it has uses for itself.
#include <cctype>
#include <iterator>
#include <set>
#include <sstream>

#include "exchange/launcher_text.h"

namespace forge {
namespace {

constexpr const char* kMacros =
    "AIO_PRIO_DELTA_MAX BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX BOOL_WIDTH BUFSIZ BYTE_ORDER "
    "CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOSE_RANGE_CLOEXEC CLOSE_RANGE_UNSHARE "
    "COLL_WEIGHTS_MAX CPU_SETSIZE CSIGNAL CUDAAPI DELAYTIMER_MAX E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT "
    "EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED "
    "ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH "
    "EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT "
    "EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE "
    "EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC "
    "ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN "
    "ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD "
    "EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS "
    "ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH "
    "EUSERS EWOULDBLOCK EXDEV EXFULL EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_SETSIZE FILENAME_MAX FOPEN_MAX F_LOCK F_OK "
    "F_TEST F_TLOCK F_ULOCK HOST_NAME_MAX IOV_MAX LINE_MAX LITTLE_ENDIAN LLONG_MAX LLONG_MIN LLONG_WIDTH LOGIN_NAME_MAX "
    "LONG_BIT LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN LONG_WIDTH L_INCR L_SET L_XTND L_ctermid L_cuserid L_tmpnam "
    "MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MQ_PRIO_MAX NAME_MAX NFDBITS NGROUPS_MAX NL_ARGMAX NL_LANGMAX NL_MSGMAX "
    "NL_NMAX NL_SETMAX NL_TEXTMAX NULL NZERO PATH_MAX PDP_ENDIAN PIPE_BUF PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir "
    "RAND_MAX RE_DUP_MAX RTSIG_MAX R_OK SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SEM_FAILED SEM_VALUE_MAX SHRT_MAX SHRT_MIN SHRT_WIDTH "
    "SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH SIZE_MAX SIZE_WIDTH SSIZE_MAX STDERR_FILENO STDIN_FILENO STDOUT_FILENO "
    "TMP_MAX TTY_NAME_MAX UCHAR_MAX UCHAR_WIDTH ULLONG_MAX ULLONG_WIDTH ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH USHRT_MAX "
    "USHRT_WIDTH WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEOF WEXITED WINT_MAX WINT_MIN WINT_WIDTH WNOHANG WNOWAIT "
    "WORD_BIT WSTOPPED WUNTRACED W_OK X_OK errno linux sched_priority stderr stdin stdout unix ";

std::set<std::string> word_set(const char* text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool is_limit(const std::string& name) {  // INT32_MAX, UINT_FAST8_WIDTH
  const bool integer = name.starts_with("INT") || name.starts_with("UINT");
  return integer && (name.ends_with("_MAX") || name.ends_with("_MIN") || name.ends_with("_WIDTH"));
}

}  // namespace

bool is_header_macro(const std::string& name) {
  static const std::set<std::string> kNames = word_set(kMacros);
  for (const char* family : {"SYS_", "CLOCK_", "PTHREAD_", "SCHED_", "CLONE_", "ADJ_", "MOD_", "STA_", "LC_", "ATOMIC_", "XATTR_",
                             "ITIMER_", "TIMER_", "RENAME_", "TIME_", "SEEK_", "CU_", "CUDA_"})
    if (name.starts_with(family)) return true;
  const bool reserved = name.starts_with("__") || (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1])));
  return reserved || is_limit(name) || kNames.count(name) > 0;
}

bool is_launcher_name(const std::string& name) {
  // std:: is used in the namespace; the others are the stems of files that lie beside, or of headers that are asked for by <>
  static const std::set<std::string> kNames = word_set(
      "std kernel forge_args alloca assert complex ctype cuda dlfcn endian errno features fenv float inttypes limits locale malloc math "
      "memory pthread sched setjmp signal stdarg stdatomic stdbool stddef stdint stdio stdlib string strings time uchar unistd wchar "
      "wctype");
  return kNames.count(name) > 0 || is_header_macro(name);
}

}  // namespace forge
