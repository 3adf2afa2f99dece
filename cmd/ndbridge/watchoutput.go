package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// watchOutput is where looks go: a terminal that is drawn on, lines, or objects.
type watchOutput struct {
	w       *watcher
	sampler *watch.Sampler
	enough  chan struct{} // closed after the looks that were asked for

	screen *tea.Program // nil: lines
	cancel context.CancelFunc
	left   chan struct{} // closed when the user quits

	full    bool           // enough is closed
	shown   map[string]int // looks that were printed
	alarms  []watch.Event  // that were not printed yet
	printed error
}

func (w *watcher) output(cancel context.CancelFunc) *watchOutput {
	return &watchOutput{w: w, enough: make(chan struct{}), left: make(chan struct{}), cancel: cancel, shown: make(map[string]int)}
}

// begin begins to draw, if there is a terminal. finish puts the terminal back; it may be called more than once.
func (o *watchOutput) begin(ctx context.Context, cancel context.CancelFunc) (finish func()) {
	out, ok := o.w.env.stdout.(*os.File)
	if _, tty := render.Columns(o.w.env.stdout); !ok || !tty || o.w.json || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	said := &lastLines{}
	restore := o.w.env.stderr.redirect(said)
	model := watchModel{output: o, said: said, colours: render.DepthOf(out, render.When(o.w.colour)) > render.Mono}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithOutput(out), tea.WithoutSignalHandler()}
	if _, tty := render.Columns(os.Stdin); !tty {
		options = append(options, tea.WithInput(nil))
	}
	screen := tea.NewProgram(model, options...)
	o.screen = screen
	done := make(chan struct{})
	go func() {
		defer close(done)
		m, err := screen.Run()
		if errors.Is(err, tea.ErrInterrupted) { // a terminal in raw mode makes no signal of Ctrl-C
			cancel()
		}
		if m, ok := m.(watchModel); err == nil && ok && m.quit {
			close(o.left)
			cancel()
		}
	}()
	return sync.OnceFunc(func() {
		screen.Quit()
		<-done
		restore()
	})
}

// quit reports whether the user has left.
func (o *watchOutput) quit() bool {
	select {
	case <-o.left:
		return true
	default:
		return false
	}
}

// looked is called after each round of looks.
func (o *watchOutput) looked() {
	state := o.sampler.State()
	if o.screen != nil {
		o.screen.Send(state)
	} else if o.printed == nil {
		if o.printed = o.print(state); o.printed != nil { // nobody reads any more
			o.cancel()
		}
	}
	few := func(a watch.Series) bool { return a.Tries < o.w.rounds }
	if !o.full && o.w.rounds > 0 && len(o.w.missing()) == 0 && !slices.ContainsFunc(state.Arrays, few) {
		o.full = true
		close(o.enough)
	}
}

// lookRecord is what --json says about one look.
type lookRecord struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int   `json:"shape"`
	Error *string `json:"error"`
	*watch.Point
	Summary *stats.Summary `json:"summary"`
}

// print prints what is new.
func (o *watchOutput) print(state watch.State) error {
	stdout := o.w.env.stdout
	for _, a := range state.Arrays {
		if n := len(a.History); a.Error == "" && n > 0 && a.Looks != o.shown[a.Name] {
			o.shown[a.Name] = a.Looks
			p := a.History[n-1]
			if o.w.json {
				if err := writeJSON(stdout, lookRecord{Name: a.Name, DType: a.Type, Shape: a.Shape, Point: &p, Summary: a.Last}); err != nil {
					return err
				}
				continue
			}
			step := ""
			if p.Step != nil {
				step = "step " + watch.Figure(*p.Step) + "  "
			}
			if _, err := fmt.Fprintf(stdout, "%s  %s%s  %s\n", p.Time.Format(time.TimeOnly), step, prose.Line(a.Name), watch.Sum(a)); err != nil {
				return err
			}
		} else if a.Error != "" && o.w.json && !a.Passed {
			if err := writeJSON(stdout, lookRecord{Name: a.Name, DType: a.Type, Shape: a.Shape, Error: &a.Error}); err != nil {
				return err
			}
		}
	}
	return o.printAlarms()
}

// last prints the alarms of a round that did not come to its end, or that with which the watch ends.
func (o *watchOutput) last() error {
	if o.w.exit && o.w.first != nil && !o.w.json {
		_, err := fmt.Fprintln(o.w.env.stdout, prose.Line(o.w.first.String()))
		return err
	}
	if o.screen == nil && o.printed == nil {
		return o.printAlarms()
	}
	return nil
}

// printAlarms prints the alarms that are new.
func (o *watchOutput) printAlarms() error {
	stdout := o.w.env.stdout
	for _, e := range o.alarms {
		var err error
		switch {
		case o.w.json:
			err = writeJSON(stdout, e)
		case !o.w.exit: // or it is said at the end
			_, err = fmt.Fprintf(stdout, "%s  alarm: %s\n", e.Time.Format(time.TimeOnly), prose.Line(e.String()))
		}
		if err != nil {
			return err
		}
	}
	o.alarms = nil
	return nil
}

// watchModel is the screen.
type watchModel struct {
	output  *watchOutput
	said    *lastLines
	colours bool

	state         watch.State
	columns, rows int
	first         int
	quit          bool
}

// Init implements tea.Model.
func (m watchModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m watchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case watch.State:
		m.state = msg
	case tea.WindowSizeMsg:
		m.columns, m.rows = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "ctrl+c":
			return m, tea.Interrupt
		case "q", "esc":
			m.quit = true
			return m, tea.Quit
		case "down", "j":
			m.first = min(m.first+1, max(len(m.state.Arrays)-1, 0))
		case "up", "k":
			m.first = max(m.first-1, 0)
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m watchModel) View() tea.View {
	said := m.said.lines()
	frame := watch.Frame{Columns: m.columns, Lines: m.rows - len(said) - 2, Colours: m.colours, First: m.first}
	lines := append(watch.Draw(m.state, frame), said...)
	v := tea.NewView(strings.Join(append(lines, "q: quit, up and down: other arrays"), "\n"))
	v.AltScreen = true
	return v
}

// lastLines keeps the last lines that were written to it. It is safe for concurrent use.
type lastLines struct {
	mu   sync.Mutex
	kept []string
}

// Write implements io.Writer.
func (l *lastLines) Write(p []byte) (int, error) {
	const most = 3
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		l.kept = append(l.kept, prose.Line(strings.TrimRight(line, "\n")))
	}
	l.kept = l.kept[max(len(l.kept)-most, 0):]
	return len(p), nil
}

func (l *lastLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.kept...)
}
