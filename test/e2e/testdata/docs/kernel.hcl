program "notebook" {
  python = env("PYTHON", "python3") # an environment that has ipykernel
  module = "ipykernel_launcher"
  args   = ["-f", pathexpand("~/notebook.json")] # an absolute path

  stop_timeout = "1s" # a kernel does not end when it is interrupted
}
