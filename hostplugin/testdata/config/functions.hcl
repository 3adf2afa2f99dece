program "camera" {
  script = env("NDTEST_UNSET")
  python = env("A", "b", "c")
  dir    = pathexpand(5)
  args   = [nosuch("x"), var.x]
  plugin = formt("%s", "x")
}
