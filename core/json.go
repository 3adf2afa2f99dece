package core

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// layoutJSON is a Layout in JSON.
type layoutJSON struct {
	DType    DType  `json:"dtype"`
	Tag      string `json:"tag"`
	Shape    []int  `json:"shape"`
	Strides  []int  `json:"strides"`
	Offset   int    `json:"offset"`
	Device   string `json:"device"`
	ReadOnly bool   `json:"read_only"`
}

// viewJSON is what JSON says of a View.
type viewJSON struct {
	Name      string     `json:"name"`
	Framework string     `json:"framework"`
	DType     DType      `json:"dtype"`
	Tag       string     `json:"tag"`
	Shape     []int      `json:"shape"`
	Strides   []int      `json:"strides"`
	Device    string     `json:"device"`
	ReadOnly  bool       `json:"read_only"`
	NBytes    int64      `json:"nbytes"`
	Route     Route      `json:"route"`
	Reason    Reason     `json:"reason"`
	Copied    bool       `json:"copied"`
	Quirks    []QuirkID  `json:"quirks"`
	Writable  bool       `json:"writable"`
	Version   uint64     `json:"version"`
	Published *time.Time `json:"published"`
}

// MarshalJSON gives an object with the keys "dtype", "tag", "shape", "strides", "offset", "device" and
// "read_only". Strides and offset are in bytes; packed types have the strides []. The device is the text of
// [Device.String]. Later versions may add keys. The zero Layout is an error that wraps ErrDType.
func (l Layout) MarshalJSON() ([]byte, error) {
	return json.Marshal(layoutJSON{
		DType: l.dtype, Tag: l.tag, Shape: l.Shape(), Strides: append([]int{}, l.strides...),
		Offset: l.offset, Device: l.device.String(), ReadOnly: l.readOnly,
	})
}

// UnmarshalJSON reads what MarshalJSON gives and checks it as [NewLayout] does, whose errors it gives. After an
// error l is what it was.
func (l *Layout) UnmarshalJSON(text []byte) error {
	var in layoutJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return &Error{Op: "layout", Kind: cmp.Or(categoryOf(err), ErrLayout), Err: err}
	}
	device, ok := parseDevice(in.Device)
	if !ok {
		return &Error{Op: "layout", Kind: ErrDevice, Err: fmt.Errorf("unknown device %q", in.Device)}
	}
	if len(in.Strides) == 0 && in.DType.Packed() {
		in.Strides = nil
	}
	checked, err := NewLayout(LayoutSpec{
		DType: in.DType, Device: device, Shape: in.Shape, Strides: in.Strides,
		Offset: in.Offset, ReadOnly: in.ReadOnly, Tag: in.Tag,
	})
	if err == nil {
		*l = checked
	}
	return err
}

// parseDevice reads the text of Device.String.
func parseDevice(text string) (Device, bool) {
	name, number, numbered := strings.Cut(text, ":")
	kind := slices.Index(deviceTexts, name)
	if kind <= 0 {
		return Device{}, kind == 0 && !numbered
	}
	index, err := strconv.Atoi(number)
	d := Device{DeviceKind(kind), index}
	return d, err == nil && d.String() == text
}

// MarshalJSON gives a summary of the view for logs and reports: an object with the keys "name", "framework",
// "dtype", "tag", "shape", "strides" (in bytes), "device", "read_only" (of the array), "nbytes", "route",
// "reason", "copied", "quirks", "writable" (of the view), "version" and "published" (null if the array was not
// published). Later versions may add keys. The elements are not part of it, and no View can be made from it. It
// works on closed views too; the zero View is an error that wraps ErrDType.
func (v *View) MarshalJSON() ([]byte, error) {
	out := viewJSON{
		Name: v.Name(), Framework: v.Framework(), DType: v.dtype, Tag: v.tag, Shape: v.Shape(),
		Strides: append([]int{}, v.strides...), Device: v.device.String(), ReadOnly: v.readOnly,
		NBytes: v.NBytes(), Route: v.Route(), Reason: v.Reason(), Copied: v.Copied(),
		Quirks: append([]QuirkID{}, v.options().Quirks...), Writable: v.Writable(), Version: v.Version(),
	}
	if at := v.Published(); !at.IsZero() {
		out.Published = &at
	}
	return json.Marshal(out)
}
