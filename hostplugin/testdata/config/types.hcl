program "types" {
  python                = 3
  script                = ["camera.py"]
  args                  = "--fps 30"
  env                   = ["A=1"]
  dir                   = true
  plugin                = ""
  checksum              = "md5:00"
  shared_heap           = "yes"
  shared_heap_threshold = "64 kilobytes"
  shared_heap_libraries = { a = "b" }
  mapped_files          = true
  handoff               = "no"
  handoff_spin          = 50
  handoff_slots         = "8"
  start_timeout         = 30
}

program "elements" {
  script                = "~/camera.py"
  args                  = ["a", ["b"], null, true]
  env                   = { A = { B = "c" }, "C=D" = "1", NDBRIDGE_GUARD = "1", PLUGIN_MIN_PORT = 5 }
  shared_heap_threshold = 4.5
  shared_heap_libraries = ["ok", "", "a,b"]
  mapped_files          = "coppy"
  promote               = "save"
  handoff_spin          = "-1us"
  handoff_slots         = 2.5
  start_timeout         = "-1s"
}

program "sizes" {
  script                = "a.py"
  shared_heap_threshold = "1KiB"
  handoff_spin          = "1s"
  handoff_slots         = 65
  start_timeout         = "soon"
}

program "toolarge" {
  script                = "a.py"
  shared_heap_threshold = "99999999999GiB"
  checksum              = "sha256:1234"
}

program "zero" {
  script                = "a.py"
  shared_heap_threshold = 0
  handoff_slots         = 0
  checksum              = "sha256:zz"
}
