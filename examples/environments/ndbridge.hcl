program "instrument" {
  python = env("PYTHON_NUMPY", "old/bin/python") # an environment with NumPy 1.x, which the instrument's driver needs
  script = "instrument.py"
}

program "model" {
  python = env("PYTHON_TORCH", "new/bin/python") # an environment with PyTorch, and NumPy 2
  script = "model.py"
}
