program "camera" {
  script        = env("NDTEST_UNSET", "camera.py")
  start_timeout = env("NDTEST_UNSET", "2s")
}
