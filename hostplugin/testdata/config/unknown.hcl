progam "camera" {
  script = "camera.py"
}

program "camera" {
  scirpt       = "camera.py"
  script       = "camera.py"
  sharedheap   = true
  attach       = "/run/cam.sock"
  zzz          = 1
}

adapter "numpy" {
  order = "device"
  quirk = "numpy.object-dtype"
  copy { }
  quirk "numpy.object-dtype" {
    enable = false
    inner { }
  }
}

runtime_dir = "/tmp"
