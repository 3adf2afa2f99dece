adapter "torch" {
  quirk "torch.neg-bit-silent" { enabled = false }
  quirk "torch.requires-grad" { effect = "refuse" }
}

adapter "generic" {
  copy = "never"
}

program "trainer" {
  script = "train.py"
}
