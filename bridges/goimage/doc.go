// Package goimage makes pictures of Go's package image of views, without a copy: what Python writes appears in the picture, and
// what Go draws into the picture of a writable view appears in Python.
//
//	frame, err := camera.View(ctx, "frame", hostplugin.Writable()) // uint8 of 480 by 640 by 3
//	...
//	picture, err := goimage.New(frame)
//	...
//	goimage.Draw(picture, image.Rect(10, 10, 90, 12), image.NewUniform(color.White), image.Point{}, draw.Src)
//
// A view has the axes height and width, and may have a third one of 1, 3 or 4 channels. Crops (View.Sub) are pictures, too.
// Where the channels come first, as PyTorch has them, View.Transpose(1, 2, 0) puts them last; where they are blue, green and
// red, as OpenCV has them, View.Step(2, -1) reverses them. Neither copies anything.
//
// Gray, Gray16, RGBA and NRGBA give the types of package image, for which it and its encoders have fast ways. They want the
// points of a row to follow each other. New gives an Image of this package, which reads and writes everything else:
// three channels, 16 bits in the order of this machine, and any strides. Of chooses between them. Draw is as
// draw.Draw, but has fast ways for an Image of three channels of 8 bits.
//
// # Lifetimes
//
// A picture is the memory of its view. It must not be touched after the view was closed. What is to outlive the view is
// held by [core.View.Acquire], until its release is called. To draw into the picture of a view that is not writable faults, as with
// core.Slice; an Image panics with an error that wraps core.ErrReadOnly.
//
// It needs the standard library only, and so is no module of its own.
package goimage
