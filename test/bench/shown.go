package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the Python program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
	"github.com/ndbridge/ndbridge/stats"
)

//go:embed shown.py
var shownScript string

// shownWork says how much is shown.
type shownWork struct {
	weights, edge int // so many square arrays
	large         int // bytes of one more
	times         int // that a NaN is planted, and that the large array is shown and summed up
	pause, video  time.Duration
}

// shown is how soon a page and the command line show what is in a program.
type shown struct {
	Page    []time.Duration `json:"alarm_in_the_page_ns"` // from a NaN to its alarm
	Watch   []time.Duration `json:"alarm_of_watch_ns"`
	Wrong   int             `json:"wrong_alarms"`
	Picture []time.Duration `json:"picture_ns"` // from the request
	Figures []time.Duration `json:"figures_ns"`
	Exact   []time.Duration `json:"exact_ns"` // of all cores
	Bare    []time.Duration `json:"bare_ns"`
	Weights []time.Duration `json:"bare_weights_ns"` // one core reads all weights, of which nobody has read any for a while
	Video   video           `json:"video"`

	large int
}

// video is what a page gets of a published video of 640 x 480, 60 pictures a second, while it is shown at its full size.
type video struct {
	Rate float64 `json:"rate"` // pictures a second
	Torn int     `json:"torn"`
	Core float64 `json:"core"` // the share of one that the command uses
}

// scene is a program and who looks at it.
type scene struct {
	opts    options
	work    shownWork
	socket  string
	session *hostplugin.Session
	result  *shown
}

func measureShown(ctx context.Context, opts options, lib, dir string, out io.Writer) (_ *shown, err error) {
	fmt.Fprintln(out, "measuring how soon a page shows what a program has")
	work, folder := opts.shown, filepath.Join(dir, "shown")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, opts.python, "-c", shownScript, strconv.Itoa(work.weights), strconv.Itoa(work.edge), strconv.Itoa(work.large),
		filepath.Join(filepath.Dir(lib), "python"))
	c.Stderr, c.Env = opts.program, append(os.Environ(), listening(lib, folder)...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	}()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the program whose arrays are to be shown has ended: %w", err)
	}
	host, err := newHost(opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	s := &scene{opts: opts, work: work, socket: socketOf(folder, c.Process.Pid), result: &shown{large: work.large}}
	if s.session, err = host.Attach(ctx, hostplugin.Socket(s.socket)); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{s.alarms, s.weights, s.largeArray, s.exact, s.video} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return s.result, nil
}

// alarms plants NaNs, one after the other, each in a weight that had none.
func (s *scene) alarms(ctx context.Context) error {
	p, err := openPage(ctx, s.opts, s.socket, "--alarm", "nan", "--step", "step")
	if err != nil {
		return err
	}
	defer p.close() //nolint:errcheck // it was ended
	c, stdout, err := startCommand(ctx, s.opts, "watch", "--attach", s.socket, "--alarm", "nan", "--step", "step", "--json", "weight*")
	if err != nil {
		return err
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // its status is that of an interrupt
	}()
	watched, seen := make(chan alarmed, 2*s.work.times), make(chan struct{})
	go readWatch(stdout, s.work.weights, seen, watched)
	select {
	case <-seen: // all weights, by the command; the page has them since
	case <-time.After(time.Minute):
		return errors.New("ndbridge watch does not show all weights")
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	for i := range s.work.times {
		if err := s.plant(ctx, p, watched, fmt.Sprintf("weight%d", i*37%s.work.weights), i+1); err != nil {
			return err
		}
	}
	return nil
}

// weights reads all weights, which says what the looks at them take at least: the default budget is 1 % of a core.
func (s *scene) weights(ctx context.Context) error {
	all := make([][]float32, s.work.weights)
	for i := range all {
		v, err := s.session.View(ctx, fmt.Sprintf("weight%d", i))
		if err != nil {
			return err
		}
		defer v.Close()
		if all[i], err = core.Slice[float32](v); err != nil {
			return err
		}
	}
	read := func() time.Duration {
		begun := time.Now()
		for _, weight := range all {
			bench.Sum(weight, 1)
		}
		return time.Since(begun)
	}
	read() // maps their pages
	for range s.work.times {
		if err := pause(ctx, s.work.pause); err != nil {
			return err
		}
		s.result.Weights = append(s.result.Weights, read())
	}
	return nil
}

// plant writes a NaN into a weight at a step, and waits for both alarms.
func (s *scene) plant(ctx context.Context, p *page, watched <-chan alarmed, name string, step int) error {
	v, err := s.session.View(ctx, name, hostplugin.Writable())
	if err != nil {
		return err
	}
	defer v.Close()
	if err := s.session.Set(ctx, "step", step); err != nil {
		return err
	}
	var planted time.Time
	plant := func() error {
		err := core.Set(v, float32(math.NaN()), s.work.edge/2, s.work.edge/3)
		planted = time.Now()
		return err
	}
	var alarms []alarmed
	err = p.hear(ctx, "the NaN in "+name, plant, func(m said) bool {
		if m.Topic == "alarms" && len(m.Events) >= step {
			alarms = m.Events
			s.result.Page = append(s.result.Page, time.Since(planted))
		}
		return alarms != nil
	})
	if err != nil {
		return err
	}
	select {
	case a := <-watched:
		alarms = append(alarms, a)
		s.result.Watch = append(s.result.Watch, a.at.Sub(planted))
	case <-time.After(time.Minute):
		return fmt.Errorf("ndbridge watch says nothing of the NaN in %s", name)
	}
	named := 0
	for _, a := range alarms {
		if a.Name == name && a.Alarm == "nan" && a.Step != nil && *a.Step == float64(step) {
			named++
		}
	}
	if named != 2 {
		s.result.Wrong++
	}
	return nil
}

// readWatch reads what "ndbridge watch --json" prints. It closes seen when so many arrays were looked at.
func readWatch(r io.Reader, arrays int, seen chan<- struct{}, alarms chan<- alarmed) {
	names := make(map[string]bool)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var a alarmed
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		switch {
		case a.Alarm != "":
			a.at = time.Now()
			alarms <- a
		case !names[a.Name]:
			if names[a.Name] = true; len(names) == arrays {
				close(seen)
			}
		}
	}
}

// largeArray shows the large array, and a small one between.
func (s *scene) largeArray(ctx context.Context) error {
	p, err := openPage(ctx, s.opts, s.socket)
	if err != nil {
		return err
	}
	defer p.close() //nolint:errcheck // it was ended
	show := func(name string) (picture, figures time.Duration, err error) {
		begun := time.Now()
		look := func() error {
			return p.look(ctx, fmt.Sprintf(`"name": %q, "auto": true, "width": 400, "height": 400, "line": -1`, name))
		}
		err = p.hear(ctx, name, look, func(m said) bool {
			switch {
			case m.Name != name:
			case m.Topic == "picture" && picture == 0:
				picture = time.Since(begun)
			case m.Topic == "array" && figures == 0 && len(m.Figures) > 0 && string(m.Figures) != "null":
				figures = time.Since(begun)
			}
			return picture > 0 && figures > 0
		})
		return picture, figures, err
	}
	for range s.work.times {
		if _, _, err := show("weight1"); err != nil {
			return err
		}
		if err := pause(ctx, s.work.pause); err != nil { // as somebody who looks at what was shown
			return err
		}
		picture, figures, err := show("picture")
		if err != nil {
			return err
		}
		s.result.Picture, s.result.Figures = append(s.result.Picture, picture), append(s.result.Figures, figures)
	}
	return nil
}

// exact sums the large array up, and reads it once.
func (s *scene) exact(ctx context.Context) error {
	v, err := s.session.View(ctx, "picture")
	if err != nil {
		return err
	}
	defer v.Close()
	data, err := core.Slice[float32](v)
	if err != nil {
		return err
	}
	bench.Sum(data, 0) // maps its pages
	for range s.work.times {
		begun := time.Now()
		bench.Sum(data, 0)
		bare := time.Since(begun)
		begun = time.Now()
		if _, err := stats.Of(ctx, v, nil); err != nil {
			return err
		}
		s.result.Exact, s.result.Bare = append(s.result.Exact, time.Since(begun)), append(s.result.Bare, bare)
	}
	return nil
}

// video counts the pictures of a video.
func (s *scene) video(ctx context.Context) error {
	if err := s.session.Set(ctx, "recording", true); err != nil {
		return err
	}
	p, err := openPage(ctx, s.opts, s.socket, "--budget", "25")
	if err != nil {
		return err
	}
	defer p.close() //nolint:errcheck // it was ended
	if err := p.look(ctx, `"name": "video", "auto": true, "image": "HWC", "width": 640, "height": 480, "line": -1`); err != nil {
		return err
	}
	var (
		ran      time.Duration
		begun    time.Time
		pictures int
	)
	begin := func() error {
		ran, err = processorTime(p.command.Process.Pid)
		begun = time.Now()
		return err
	}
	opened := time.Now()
	err = p.hear(ctx, "the video", func() error { return nil }, func(said) bool { // until its reading has learned what pictures cost
		return time.Since(opened) > 2*time.Second
	})
	if err != nil {
		return err
	}
	err = p.hear(ctx, "the video", begin, func(m said) bool {
		if m.Topic == "picture" && m.Name == "video" {
			pictures++
			if !bytes.Equal(m.points[4:], m.points[:len(m.points)-4]) {
				s.result.Video.Torn++
			}
		}
		return time.Since(begun) > s.work.video
	})
	if err != nil {
		return err
	}
	now, err := processorTime(p.command.Process.Pid)
	took := time.Since(begun)
	s.result.Video.Rate, s.result.Video.Core = float64(pictures)/took.Seconds(), float64(now-ran)/float64(took)
	return err
}

func printShown(out io.Writer, s *shown) {
	if s == nil {
		return
	}
	fmt.Fprintf(out, "\nHow soon a page, and the command line, show what a program has; of %s, exact figures beside reading it once, by all cores.\n\n", bench.SizeText(s.large))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what\tp50\tlongest\tn\t")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{
		{"alarm of a NaN, in the page", s.Page},
		{"alarm of a NaN, ndbridge watch", s.Watch},
		{"reading all weights once, on one core", s.Weights},
		{"picture of " + bench.SizeText(s.large), s.Picture},
		{"sampled figures", s.Figures},
		{"exact figures", s.Exact},
		{"reading it once", s.Bare},
	} {
		q := bench.QuantilesOf(row.took)
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t\n", row.name, bench.TimeText(q.P50), bench.TimeText(slices.Max(row.took)), len(row.took))
	}
	_ = table.Flush() // it writes where all else was written
	fmt.Fprintf(out, "a video of 640 x 480: %.1f pictures a second of 60, %d torn, %.0f %% of a core\n", s.Video.Rate, s.Video.Torn, 100*s.Video.Core)
}

// shown holds a page, and the command line, to showing soon what is there.
func (j *judge) shown(s *shown) {
	if s == nil {
		return
	}
	j.within("alarm of a NaN in one weight of many, in the page, the slowest", slices.Max(s.Page), time.Second)
	j.within("alarm of a NaN in one weight of many, ndbridge watch, the slowest", slices.Max(s.Watch), time.Second)
	j.add("alarms without the right name and step", "0", strconv.Itoa(s.Wrong)+" of "+strconv.Itoa(len(s.Page)+len(s.Watch)), s.Wrong == 0)
	size := bench.SizeText(s.large)
	j.within("picture of "+size+", the slowest", slices.Max(s.Picture), 100*time.Millisecond)
	j.within("sampled figures of "+size+", the slowest", slices.Max(s.Figures), 100*time.Millisecond)
	exact, bare := bench.QuantilesOf(s.Exact).P50, bench.QuantilesOf(s.Bare).P50
	j.atMost("exact figures of "+size, exact, 1.2, "reading it once with all cores", bare)
	j.add("pictures of a video of 640 x 480, 60 a second", ">= 30 a second, none torn",
		fmt.Sprintf("%.1f, %d torn", s.Video.Rate, s.Video.Torn), s.Video.Rate >= 30 && s.Video.Torn == 0)
	j.add("what they take", "<= 30 % of a core", fmt.Sprintf("%.0f %%", 100*s.Video.Core), s.Video.Core <= 0.3)
}
