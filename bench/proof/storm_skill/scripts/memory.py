"""Takes memory without end, and touches it."""


held = []
while True:
    held.append(bytearray(64 << 20))
    for at in range(0, 64 << 20, 4096): held[-1][at] = 1
