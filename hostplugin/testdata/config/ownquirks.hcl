# What quirks there are is not known where a plugin of the user's own runs.
adapter "torch" {
  quirk "torch.of-mine" { effect = "whatever" }
}

program "trainer" {
  script = "train.py"
  plugin = "./lib/mine.so"
}
