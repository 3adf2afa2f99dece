program "camera" {
  script = "camera.py"
  env    = { PYTHONFAULTHANDLER = 1 } # a crash prints Python's stack, which the host logs
}
