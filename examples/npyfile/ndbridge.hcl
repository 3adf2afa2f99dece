program "data" {
  plugin = env("NPYFILE", "./npyfile") # an executable, since there is neither script nor module
  args   = ["arrays"]                  # the folder; without one, the working directory
}
