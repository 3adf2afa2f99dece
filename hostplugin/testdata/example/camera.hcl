program "camera" {
  python = env("NDBRIDGE_TEST_PYTHON", "python3")
  script = "camera.py"
}
