program "camera" {
  python = env("PYTHON", "python3") # the user's own interpreter; nothing is installed into it
  script = "camera.py"
}
