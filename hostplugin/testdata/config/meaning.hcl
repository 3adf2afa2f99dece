program "both" {
  script = "a.py"
  module = "a"
}

program "nothing" {}

program "interpreter" {
  python = "python3"
}

program "executable" {
  plugin      = "./npyfile"
  shared_heap = true
}

program "both" {
  script = "b.py"
}

program "file" {
  module = "a.py"
}

program "bad name!" {
  script = "b.py"
}

program {
  script = "b.py"
}

program "two" "names" {
  script = "b.py"
}

adapter "numpy" {
  copy = "if_needed"
  sync = "devise"
  quirk "object-dtype" {}
  quirk "torch.requires-grad" {}
  quirk "numpy.longdouble" {}
  quirk "numpy.longdouble" {}
}

adapter "numpy" {
  copy = "sometimes"
}
