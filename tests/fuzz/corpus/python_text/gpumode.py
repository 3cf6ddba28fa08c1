def generate_input(m: int, n: int, seed: int):
    gen = torch.Generator(device="cuda")
    a = torch.empty(m, n, device="cuda", dtype=torch.float16)
    b = torch.randn(
        n, m, generator=gen,  # comment )
    ).to(torch.bfloat16)
    return (a, b)
