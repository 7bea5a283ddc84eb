"""`python -m understudy.tool.zygote --run-dir DIR`, as `understudy up --zygote` starts it."""

from understudy.tool.zygote.zygote import main

if __name__ == "__main__":
    main()
