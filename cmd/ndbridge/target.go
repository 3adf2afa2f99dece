package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// defaultConfig is the configuration that is used if none is named and no program is given directly.
const defaultConfig = "ndbridge.hcl"

// target holds the flags that say which programs are meant.
type target struct {
	config  string
	program string

	attaches bool // the command can look at programs that run already
	calls    bool // --arg is the command's own; arguments of the program stand behind -- only

	script string
	module string
	python string
	args   []string

	attach string // to a program that runs already
	wait   bool   // until it does

	plugin       string
	noSharedHeap bool
	logLevel     string
}

func (t *target) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&t.script, "script", "", "run this Python `file`")
	f.StringVar(&t.module, "module", "", "run this Python module, as python -m `name` would")
	f.StringVar(&t.python, "python", "", "the `interpreter`, a path or a name on PATH (default python3)")
	if !t.calls {
		f.StringArrayVar(&t.args, "arg", nil, "an `argument` of the program; may be given again. What stands behind -- is another way to say them")
	}
	f.StringVarP(&t.config, "config", "c", "", t.configUsage())
	f.StringVar(&t.program, "program", "", "the `name` of the program in the configuration")
	if t.attaches {
		f.StringVar(&t.attach, "attach", "", "look at a `program` that runs already: its name, its process, or the path of its socket; see ndbridge ps")
		f.BoolVar(&t.wait, "wait", false, "with --attach: wait for a program that has not begun")
	}
	f.StringVar(&t.plugin, "plugin", "", "the plugin: a shipped one by name, or a `path` (default all)")
	f.BoolVar(&t.noSharedHeap, "no-shared-heap", false, "run the program with its own allocator; most of its arrays are copied then")
	f.StringVar(&t.logLevel, "log-level", "warn", "how much of what goes on is said on standard error: debug, info, warn, error")
	mustComplete(cmd.MarkFlagFilename("script", "py"))
	mustComplete(cmd.MarkFlagFilename("config", "hcl"))
	mustComplete(cmd.RegisterFlagCompletionFunc("log-level",
		cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
	mustComplete(cmd.RegisterFlagCompletionFunc("program",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return t.programs(), cobra.ShellCompDirectiveNoFileComp
		}))
}

func (t *target) configUsage() string {
	usage := "take programs from this configuration `file` (default " + defaultConfig + ", if no program is given)"
	if t.attaches {
		usage += "; with --attach, the settings of the program that listens under one of its names"
	}
	return usage
}

// mustComplete checks what is only wrong if a flag of that name was not defined.
func mustComplete(err error) {
	if err != nil {
		panic(err)
	}
}

func (t *target) direct() bool { return t.script != "" || t.module != "" }

func (t *target) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(t.logLevel)); err != nil {
		return level, usagef("--log-level %s: expected debug, info, warn or error", t.logLevel)
	}
	return level, nil
}

// programs lists the names of the configured programs, for completion.
func (t *target) programs() []string {
	cfg, err := hostplugin.Load(t.configFile())
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range cfg.Programs {
		names = append(names, p.Name)
	}
	return names
}

func (t *target) configFile() string {
	if t.config == "" {
		return defaultConfig
	}
	return t.config
}

// check refuses two ways of saying which program is meant.
func (t *target) check() error {
	given := ""
	for _, way := range []struct{ flag, value string }{
		{"script", t.script}, {"module", t.module}, {"config", t.config}, {"attach", t.attach},
	} {
		switch {
		case way.value == "", given == "config" && way.flag == "attach": // a program that runs takes its settings from there
		case given != "":
			return usagef("--%s and --%s: only one of them can say which program is meant", given, way.flag)
		default:
			given = way.flag
		}
	}
	if t.attach != "" {
		for flag, given := range map[string]bool{"program": t.program != "", "python": t.python != "", "plugin": t.plugin != "", "no-shared-heap": t.noSharedHeap, "arg": len(t.args) > 0} {
			if given {
				return usagef("--attach and --%s: that is for programs that are started", flag)
			}
		}
	}
	if t.wait && t.attach == "" {
		return usagef("--wait: that concerns a program that runs already, which --attach names")
	}
	if t.direct() && t.program != "" {
		return usagef("--%s and --program: --program names one of a configuration", given)
	}
	return nil
}

// scriptAmong asks whether one of the names that the user gave is a script.
func scriptAmong(names []string) string {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && strings.HasSuffix(name, ".py") {
			return "; did you mean --script " + name + "?"
		}
	}
	return ""
}

// load gives the configuration that is meant, with the flags' changes. names is what the user has named,
// and extra are further arguments of the program.
func (t *target) load(names, extra []string) (hostplugin.Config, error) {
	extra = slices.Concat(t.args, extra)
	if err := t.check(); err != nil {
		return hostplugin.Config{}, err
	}
	if t.attach != "" {
		if len(extra) > 0 {
			return hostplugin.Config{}, usagef("--attach: a program that runs already takes no arguments")
		}
		return t.attached()
	}
	if t.direct() {
		return hostplugin.Config{Programs: []hostplugin.Program{t.change(hostplugin.Program{
			Name: programName(t.script, t.module), Script: t.script, Module: t.module,
		}, extra)}}, nil
	}
	if t.config == "" {
		if _, err := os.Stat(defaultConfig); errors.Is(err, fs.ErrNotExist) {
			return hostplugin.Config{}, usagef("which program? Give --script FILE, --module NAME or --config FILE (there is no %s here)%s",
				defaultConfig, scriptAmong(names))
		}
	}
	cfg, err := hostplugin.Load(t.configFile())
	if err != nil {
		return cfg, err
	}
	for i, p := range cfg.Programs {
		cfg.Programs[i] = t.change(p, extra)
	}
	return cfg, nil
}

// attached gives the configuration for a program that runs already: what the named file has, and the program itself if that has it not.
func (t *target) attached() (cfg hostplugin.Config, err error) {
	if t.config != "" {
		if cfg, err = hostplugin.Load(t.config); err != nil {
			return cfg, err
		}
	}
	t.program = programName(t.attach, "")
	if !slices.ContainsFunc(cfg.Programs, func(p hostplugin.Program) bool { return p.Name == t.program }) {
		cfg.Programs = append(cfg.Programs, hostplugin.Program{Name: t.program, Module: t.program})
	}
	return cfg, nil
}

// running is the program that runs already, or is waited for.
func (t *target) running() hostplugin.Target {
	named := t.named()
	if t.wait {
		return named.Await()
	}
	return named
}

func (t *target) named() hostplugin.Target {
	if strings.Contains(t.attach, "/") {
		return hostplugin.Socket(t.attach)
	}
	if pid, err := strconv.Atoi(t.attach); err == nil {
		return hostplugin.PID(pid)
	}
	return hostplugin.Name(t.attach)
}

// open starts a program, or attaches to it.
func (t *target) open(ctx context.Context, host *hostplugin.Host, program string) (*hostplugin.Session, error) {
	if t.attach != "" {
		return host.Attach(ctx, t.running())
	}
	return host.Start(ctx, program)
}

// change applies the flags to a program.
func (t *target) change(p hostplugin.Program, extra []string) hostplugin.Program {
	p.Args = append(p.Args, extra...)
	if t.python != "" && (p.Script != "" || p.Module != "") {
		p.Python = t.python
	}
	if t.plugin != "" {
		p.Plugin, p.Checksum = t.plugin, ""
	}
	if t.noSharedHeap && (p.Script != "" || p.Module != "") {
		p.SharedHeap.Off = true
	}
	return p
}

// programName names a program that is given directly after its file or module.
func programName(script, module string) string {
	name := module
	if script != "" {
		name = strings.TrimSuffix(filepath.Base(script), ".py")
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.", r):
			return r
		}
		return '_'
	}, name)
	if name == "" || name[0] == '-' || name[0] == '.' {
		return "_" + name
	}
	return name
}

// bounds holds the flags that say how long to wait.
type bounds struct {
	timeout  time.Duration
	patience time.Duration
}

func (b *bounds) define(f *pflag.FlagSet) {
	f.DurationVar(&b.timeout, "timeout", time.Minute, "give up after this `time`")
	f.DurationVar(&b.patience, "patience", 2*time.Second, "how long a program may run, once it has imported its modules, before arrays that it has not published are looked at: the `time` in which it completes them. A program that ends is looked at when it has ended")
}

func (b *bounds) check() error {
	if b.timeout <= 0 || b.patience < 0 {
		return usagef("--timeout and --patience must be positive")
	}
	return nil
}
