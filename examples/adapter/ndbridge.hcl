program "survey" {
  python = env("GRIDLIB_PYTHON", "python3") # one that can import gridlib
  script = "survey.py"
  plugin = env("GRIDLIB_PLUGIN", "./build/gridlib.so")

  # Which libraries' memory is shared. gridlib has its memory from Python itself: "*" stands for all.
  shared_heap_libraries = ["*"]
}
