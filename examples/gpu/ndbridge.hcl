program "signal" {
  # Any interpreter that has PyCUDA, and a GPU.
  python = env("PYTHON", "python3")
  script = "program.py"
}
