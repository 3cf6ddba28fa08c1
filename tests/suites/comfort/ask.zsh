# SPDX-License-Identifier: Apache-2.0
# ask.zsh FOLDER LINE WANTED: types LINE and a tab into a zsh that has FOLDER/_forge in fpath; does its terminal then show WANTED?
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='ready> '; fpath=($1 \$fpath); autoload -Uz compinit && compinit -u -D; stty cols 200"
zpty -w shell "bindkey '^I' expand-or-complete; echo be''gun"

shown() {  # waits until the terminal shows $1
  local all= out=
  repeat 300; do
    zpty -r -t shell out && all+=$out
    [[ $all == *$1* ]] && return 0
    sleep 0.1
  done
  print -r -- "not shown: $1, but: $all"
  return 1
}
shown begun && zpty -w -n shell "$2"$'\t' && shown "$3"
exit $?
