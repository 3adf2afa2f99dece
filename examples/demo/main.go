// Command demo is a host: it runs a Python program (program.py), takes views of its arrays, draws them,
// writes into one of them, and calls a function with an array of its own. Then it attaches to a program that runs
// already (training.py), and lets "ndbridge inspect" show it in a browser. The programs know nothing of it.
//
// What it knows of ndbridge is hostplugin and core, as any host would; internal/render, which makes the
// pictures, is what "ndbridge view" draws with.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/render"
)

// program is the one in the configuration.
const program = "photographer"

// patience is far more than a start of Python on a slow machine takes.
const patience = 2 * time.Minute

func main() {
	config := flag.String("config", "examples/demo/ndbridge.hcl", "the configuration `file`")
	out := flag.String("out", "demo-out", "the `folder` to draw pictures into")
	command := flag.String("ndbridge", "build/ndbridge", "the `command` that runs programs to which hosts come")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *command, *config, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// load reads the configuration of programs that are heard.
func load(config string, heard io.Writer) (hostplugin.Config, error) {
	cfg, err := hostplugin.Load(config)
	if err != nil {
		return cfg, err
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for i := range cfg.Programs {
		cfg.Programs[i].Stdout, cfg.Programs[i].Stderr = heard, os.Stderr
	}
	return cfg, nil
}

// run shows the whole demo on w and draws pictures into dir.
func run(ctx context.Context, w io.Writer, command, config, dir string) error {
	interrupted := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	heard := newTranscript()
	cfg, err := load(config, heard)
	if err != nil {
		return err
	}
	host, err := hostplugin.New(cfg)
	if err != nil {
		return err
	}
	defer host.Close() //nolint:errcheck // it ends the program and closes all views
	began := time.Now()
	session, err := host.Start(ctx, program)
	if err != nil {
		return err
	}
	s := newShow(w)
	taken, err := look(ctx, s, session, began)
	if err != nil {
		return err
	}
	if err := draw(ctx, dir, taken); err != nil {
		return err
	}
	photo, transposed, mirrored, face, spectrum := taken[0].View, taken[1].View, taken[2].View, taken[3].View, taken[4].View
	if err := s.gallery(ctx, photo, face, spectrum); err != nil {
		return err
	}
	changed, err := mark(ctx, session)
	if err != nil {
		return err
	}
	said, err := heard.wait(ctx, session, fmt.Sprintf("%d pixels of my photo have changed", changed))
	if err != nil {
		return err
	}
	s.marked(changed, said)
	if err := s.gallery(ctx, photo, transposed, mirrored); err != nil {
		return err
	}
	if err := drawOne(ctx, dir, "marked", photo); err != nil {
		return err
	}
	if err := blend(ctx, s, session, dir); err != nil {
		return err
	}
	training, err := train(interrupted, command, cfg.Programs[0].Python)
	if err != nil {
		return err
	}
	defer training.end()
	if err := visit(ctx, s, host, training); err != nil {
		return err
	}
	s.end(dir, config)
	_, terminal := render.Columns(w)
	return offer(interrupted, s, command, training, terminal)
}

// look takes views of the arrays of a program that began then, and shows what they are.
func look(ctx context.Context, s *show, session *hostplugin.Session, began time.Time) ([]taken, error) {
	taken, err := takeAll(ctx, session)
	if err != nil {
		return nil, err
	}
	info, err := session.Info(ctx)
	if err != nil {
		return nil, err
	}
	s.program(info, time.Since(began))
	s.table(taken)
	return taken, nil
}

// taken is a view and how long the program's side and ours needed for it.
type taken struct {
	*core.View
	took time.Duration
}

// arrays are those of program.py that are shown, in the order in which it makes them.
func arrays() []string {
	return []string{"photo", "transposed", "mirrored", "face", "spectrum", "heartbeat"}
}

// takeAll waits until the program has made its arrays, and takes views of them.
func takeAll(ctx context.Context, s *hostplugin.Session) ([]taken, error) {
	names := arrays()
	last, err := s.View(ctx, names[len(names)-1]) // waits for a name that does not exist yet
	if err != nil {
		return nil, err
	}
	if err := last.Close(); err != nil {
		return nil, err
	}
	all := make([]taken, 0, len(names))
	for _, name := range names {
		began := time.Now()
		v, err := s.View(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, taken{View: v, took: time.Since(began)})
	}
	return all, nil
}
