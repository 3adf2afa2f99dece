program "photographer" {
  # The interpreter of the environment that `make demo` makes. Any other that has PyWavelets does.
  python = env("DEMO_PYTHON", "../../build/venv/demo/bin/python")
  script = "program.py"
}
