// Package report holds what the GPU tests find out: tables whose rows the tests write, one after the
// other, into a file that outlives them, and the text that is made of them.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Field is one cell of a row.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Row is one line of a table.
type Row struct {
	Table  string  `json:"table"`
	Fields []Field `json:"fields"`
}

// Set gives a field a value. Fields stand in the order in which they were first set.
func (r *Row) Set(name string, value any) {
	text := fmt.Sprint(value)
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			r.Fields[i].Value = text
			return
		}
	}
	r.Fields = append(r.Fields, Field{name, text})
}

// Append adds a row to the end of a file, so that it is there even if the process dies right after.
func Append(file string, r *Row) (err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

// Read reads the rows of a file. One that does not exist has none.
func Read(file string) ([]Row, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []Row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return rows, fmt.Errorf("%s: %w", file, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// WriteTables writes rows as tables in Markdown, in the order of their first rows.
func WriteTables(out io.Writer, rows []Row) error {
	var titles []string
	byTitle := map[string][]Row{}
	for _, r := range rows {
		if _, seen := byTitle[r.Table]; !seen {
			titles = append(titles, r.Table)
		}
		byTitle[r.Table] = append(byTitle[r.Table], r)
	}
	for _, title := range titles {
		if _, err := fmt.Fprintf(out, "\n### %s\n\n%s", title, table(byTitle[title])); err != nil {
			return err
		}
	}
	return nil
}

// table is one table; its columns are all fields of its rows, in the order of their first appearance.
func table(rows []Row) string {
	var columns []string
	seen := map[string]bool{}
	for _, r := range rows {
		for _, f := range r.Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				columns = append(columns, f.Name)
			}
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(columns)
	fmt.Fprintf(&b, "|%s\n", strings.Repeat(" --- |", len(columns)))
	for _, r := range rows {
		cells := make([]string, len(columns))
		for i, name := range columns {
			for _, f := range r.Fields {
				if f.Name == name {
					cells[i] = Cell(f.Value)
				}
			}
		}
		line(cells)
	}
	return b.String()
}

// Cell makes a text one cell of a table in Markdown.
func Cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", "").Replace(strings.TrimSpace(text))
}
