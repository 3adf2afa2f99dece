package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// record is what --json says about one array, one object a line. Scripts depend on its keys.
type record struct {
	Name          string         `json:"name"`
	Framework     string         `json:"framework"`
	DType         core.DType     `json:"dtype"`
	Tag           string         `json:"tag"`
	Shape         []int          `json:"shape"`
	Strides       []int          `json:"strides"` // in bytes; [] for elements that share bytes
	Device        string         `json:"device"`
	ReadOnly      bool           `json:"read_only"` // the array's own property, not the view's
	Route         core.Route     `json:"route"`
	Copied        bool           `json:"copied"`
	Reason        string         `json:"reason"` // "" if it was not copied
	Quirks        []core.QuirkID `json:"quirks"`
	NBytes        int64          `json:"nbytes"`
	AddressShared bool           `json:"address_shared"` // the pages are the program's own
}

// failure is what --json says about an array that could not be had.
type failure struct {
	Name  string  `json:"name"`
	Error problem `json:"error"`
}

func recordOf(name string, v *core.View) record {
	l := v.Layout()
	r := record{
		Name: name, Framework: v.Framework(),
		DType: l.DType(), Tag: l.Tag(), Shape: l.Shape(), Strides: append([]int{}, l.Strides()...),
		Device: l.Device().String(), ReadOnly: l.ReadOnly(),
		Route: v.Route(), Copied: v.Copied(), Quirks: append([]core.QuirkID{}, v.Quirks()...),
		NBytes: l.NBytes(), AddressShared: !v.Copied(),
	}
	if v.Reason() != "" {
		r.Reason = string(v.Reason())
	}
	return r
}

// listing is what "ls --json" says about one array.
type listing struct {
	Name      string     `json:"name"`
	Framework string     `json:"framework"`
	Published bool       `json:"published"`
	DType     core.DType `json:"dtype"`
	Tag       string     `json:"tag"`
	Shape     []int      `json:"shape"`
	Strides   []int      `json:"strides"`
	Device    string     `json:"device"`
	ReadOnly  bool       `json:"read_only"`
	NBytes    int64      `json:"nbytes"`
}

func listingOf(e contract.Entry) listing {
	l := e.Layout
	return listing{
		Name: e.Name, Framework: e.Framework, Published: e.Published,
		DType: l.DType(), Tag: l.Tag(), Shape: l.Shape(), Strides: append([]int{}, l.Strides()...),
		Device: l.Device().String(), ReadOnly: l.ReadOnly(), NBytes: l.NBytes(),
	}
}

// deepListing is a listing with what a search finds out besides.
type deepListing struct {
	listing
	Also   []string    `json:"also"`
	Route  core.Route  `json:"route"`
	Reason core.Reason `json:"reason"`
}

// leftOut is what a search did not tell.
type leftOut struct {
	More    int  `json:"more"`
	Partial bool `json:"partial"`
}

// writeJSON writes one object on a line of its own.
func writeJSON(w io.Writer, object any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(object)
	if err == nil {
		_, err = w.Write(prose.JSON(b.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
