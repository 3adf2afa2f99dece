module github.com/ndbridge/ndbridge/native/linux_amd64

go 1.26.0
