# A script, run by the interpreter of the environment beside this file.
program "camera" {
  python = env("CAMERA_PYTHON", ".venv/bin/python")
  script = "camera.py"
  args   = ["--fps", 30]
  env    = { OMP_NUM_THREADS = 2 }
}

# A module. What it maps from files is copied, so that nobody who truncates one can end the host.
program "trainer" {
  module                = "pkg.train"
  dir                   = "${env("TRAINER_DATA", "/srv/data")}/today"
  shared_heap_threshold = "1MiB"
  promote               = "never"
  mapped_files          = "copy"
  handoff_spin          = "0s"
  arguments             = "torch"
  on_stuck              = "end"
  stuck_timeout         = "10s"
  start_timeout         = "2m"
  stop_timeout          = "30s"
}

# An executable that serves arrays by itself: it has neither script nor module.
program "files" {
  plugin = "./npyfile"
  args   = ["arrays"]
}

# A tensor of PyTorch that would have to be copied is an error, and so is one that requires grad.
adapter "torch" {
  copy = "never"
  sync = "stream"
  quirk "torch.requires-grad" { effect = "refuse" }
}
