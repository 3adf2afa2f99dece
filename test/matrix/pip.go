package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// A gap is a version that was not tested under one Python.
type gap struct {
	version, python string
	reason          string // why pip cannot install it; "" if it can, and there is just no environment
}

// gaps asks pip about each version that was tested under some of the Pythons and not under others.
func gaps(ctx context.Context, f framework, tested []cell, lists []list, pythons []python) ([]gap, error) {
	var all []gap
	for _, version := range versions(tested) {
		requirements := pinned(f, version, lists)
		if requirements == nil {
			return nil, fmt.Errorf("no list of packages has %s %s, which the tests have met", f.name, version)
		}
		for _, p := range pythons {
			if find(tested, version, p.minor) != nil {
				continue
			}
			reason, err := refusal(ctx, p, requirements)
			if err != nil {
				return nil, err
			}
			all = append(all, gap{version, p.minor, reason})
		}
	}
	return all, nil
}

// pinned gives the requirements of a framework's version as a list has them.
func pinned(f framework, version string, lists []list) []string {
	for _, l := range lists {
		if r := l.requirements(f, version); r != nil {
			return r
		}
	}
	return nil
}

// versions lists the versions of cells, which are sorted.
func versions(cells []cell) []string {
	var all []string
	for _, c := range cells {
		all = append(all, c.version)
	}
	return slices.Compact(all)
}

func find(cells []cell, version, python string) *cell {
	for i := range cells {
		if cells[i].version == version && cells[i].python == python {
			return &cells[i]
		}
	}
	return nil
}

// refusal gives the reason why pip has no wheels for these requirements, or "" if it has.
func refusal(ctx context.Context, p python, requirements []string) (string, error) {
	for _, requirement := range requirements {
		name, version, _ := strings.Cut(requirement, "==")
		// It tells what it has wheels of for this Python when none will do. (`pip index versions` counts
		// source archives too, with some versions of pip.)
		out, _ := install(ctx, p, name+"<0")
		if slices.ContainsFunc(offered(out), func(v string) bool { return same(v, version) }) {
			continue
		}
		out, err := install(ctx, p, requirement)
		if err == nil {
			continue
		}
		reason, ok := pipReason(out, version)
		if !ok {
			return "", fmt.Errorf("pip cannot say whether there is %s for Python %s: %s", requirement, p.minor, out)
		}
		return reason, nil
	}
	return "", nil
}

// install gives what pip writes when it is to install wheels, which it does not do. The error is not nil if
// it would not.
func install(ctx context.Context, p python, requirement string) (string, error) {
	out, err := exec.CommandContext(ctx, p.path, "-m", "pip", "--disable-pip-version-check", "--no-input", "install",
		"--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", requirement).CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return err.Error(), err
	}
	return string(out), err
}

// offered lists the versions that pip says it has found.
func offered(out string) []string {
	found := foundVersions.FindStringSubmatch(out)
	if found == nil {
		return nil
	}
	return strings.Split(found[1], ", ")
}

var (
	foundVersions = regexp.MustCompile(`\(from versions: ([^)]*)\)`)
	noMatch       = regexp.MustCompile(`(?m)^ERROR: (No matching distribution found for \S+)`)
)

// pipReason takes the reason out of what pip writes when it finds no wheel of a version: its words, but
// for the versions in the middle of those that it has found.
func pipReason(out, version string) (reason string, ok bool) {
	match := noMatch.FindStringSubmatch(out)
	if match == nil {
		return "", false
	}
	reason = match[1]
	if all := offered(out); all != nil {
		if len(all) > 3 {
			all = []string{all[0], "…", all[len(all)-1]}
		}
		reason += " (from versions: " + strings.Join(all, ", ") + ")"
	}
	requires := regexp.MustCompile(`(?:^|[ ;])` + regexp.QuoteMeta(version) + ` (Requires-Python [^;\n]*)`)
	if match := requires.FindStringSubmatch(out); match != nil {
		reason += "; " + strings.TrimSpace(match[1])
	}
	return reason, true
}
