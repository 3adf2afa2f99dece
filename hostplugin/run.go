package hostplugin

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
)

// Run starts one program and opens a session with it, which owns the host that it needs: closing the session closes both.
// It is [New] and [Host.Start] for a host of one program, with their errors. A Program without a Name is called after its
// script, its module or its plugin.
func Run(ctx context.Context, p Program) (*Session, error) {
	p.Name = cmp.Or(p.Name, nameOf(&p))
	h, err := New(Config{Programs: []Program{p}})
	if err != nil {
		return nil, err
	}
	s, err := h.Start(ctx, p.Name)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	s.ownsHost = true
	return s, nil
}

// nameOf gives a program a name that a configuration accepts, in which other characters become '_'.
func nameOf(p *Program) string {
	name := p.Module
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(cmp.Or(p.Script, p.Plugin, "program")), ".py")
	}
	name = regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(name, "_")
	return cmp.Or(strings.TrimLeft(name, "-."), "program")
}
