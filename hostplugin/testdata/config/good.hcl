adapter "numpy" {
  copy = "never"
  sync = "stream"
  quirk "numpy.object-dtype" { enabled = false }
  quirk "numpy.longdouble" { enabled = true }
}

program "camera" {
  python                = ".venv/bin/python"
  script                = "camera.py"
  args                  = concat(["--fps", 30], split(",", "a,b"))
  env                   = { OMP_NUM_THREADS = 2, GREETING = format("%s-%s", upper("x"), env("NDTEST_UNSET", "none")) }
  dir                   = "work"
  plugin                = "numpy"
  checksum              = "sha256:${join("", ["0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"])}"
  shared_heap           = true
  shared_heap_threshold = "1MiB"
  shared_heap_libraries = ["libtorch", "_multiarray"]
  promote               = "always"
  mapped_files          = "copy"
  handoff               = true
  handoff_spin          = "20us"
  handoff_slots         = 4
  start_timeout         = "1m30s"
}

program "trainer" {
  module      = "pkg.train"
  shared_heap = false
  handoff     = false
  python      = null
}

program "files" {
  plugin       = "bin/npyfile"
  args         = ["/data"]
  handoff_spin = "0s"
}
