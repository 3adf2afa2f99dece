package main

import (
	"context"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// blend draws a disc in memory of the host's, lets the program blend it with its photo, and shows both.
func blend(ctx context.Context, s *show, session *hostplugin.Session, dir string) error {
	picture, err := disc(session)
	if err != nil {
		return err
	}
	defer picture.Close() //nolint:errcheck // the host's own memory, which the host gives back in any case
	function, err := session.Func(ctx, "blend")
	if err != nil {
		return err
	}
	began := time.Now()
	result, err := function.Call(ctx, picture, hostplugin.Kw{"share": 0.4})
	if err != nil {
		return err
	}
	defer result.Close() //nolint:errcheck // the session says what failed
	s.blended(result.View(), time.Since(began))
	if err := s.titled(ctx, []string{"disc", "blend(disc, share=0.4)"}, []*core.View{picture, result.View()}); err != nil {
		return err
	}
	return drawOne(ctx, dir, "blended", result.View())
}

// disc gives a new array of the host's, which the program can be given, as large as the photo: white within a circle,
// black around it.
func disc(session *hostplugin.Session) (*core.View, error) {
	const size, radius = 512, 200
	picture, err := session.New(core.Uint8, size, size)
	if err != nil {
		return nil, err
	}
	rows, err := core.Rows[uint8](picture)
	if err != nil {
		return nil, err
	}
	for y, row := range rows {
		for x := range row {
			if dx, dy := x-size/2, y-size/2; dx*dx+dy*dy < radius*radius {
				row[x] = 255
			}
		}
	}
	return picture, nil
}
