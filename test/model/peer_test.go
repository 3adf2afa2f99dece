package model

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// answerBound is how long a program may take for one request, on a machine that is busy.
const answerBound = 120 * time.Second

// peer is a program that answers requests.
type peer struct {
	dir      string
	listener *net.UnixListener
	conn     *net.UnixConn
	lines    *bufio.Reader
}

// newPeer listens for a program.
func newPeer() (*peer, error) {
	dir, err := os.MkdirTemp("", "ndm")
	if err != nil {
		return nil, err
	}
	p := &peer{dir: dir}
	if p.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: p.socket(), Net: "unix"}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

func (p *peer) socket() string { return filepath.Join(p.dir, "s") }

// greet waits for the program.
func (p *peer) greet() (*hello, error) {
	if err := p.listener.SetDeadline(time.Now().Add(answerBound)); err != nil {
		return nil, err
	}
	conn, err := p.listener.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("the program did not connect: %w", err)
	}
	p.conn, p.lines = conn, bufio.NewReaderSize(conn, 1<<16)
	h := new(hello)
	return h, p.read(h)
}

func (p *peer) ask(r *request) (*answer, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := p.conn.SetDeadline(time.Now().Add(answerBound)); err != nil {
		return nil, err
	}
	if _, err := p.conn.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	a := new(answer)
	return a, p.read(a)
}

func (p *peer) read(to any) error {
	if err := p.conn.SetDeadline(time.Now().Add(answerBound)); err != nil {
		return err
	}
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, to)
}

func (p *peer) close() {
	if p.conn != nil {
		p.conn.Close()
	}
	p.listener.Close()
	_ = os.RemoveAll(p.dir) // an empty folder; nothing is to be done about an error
}
