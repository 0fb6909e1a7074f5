package rpc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestSplitAddress(t *testing.T) {
	tests := []struct{ addr, network, target string }{
		{"unix:/run/x.sock", "unix", "/run/x.sock"},
		{"10.0.0.5:9701", "tcp", "10.0.0.5:9701"},
		{"[fe80::1]:9701", "tcp", "[fe80::1]:9701"},
		{"central.example.org:1", "tcp", "central.example.org:1"},
		{"unix:x.sock", "", ""}, {"unix:", "", ""}, {"", "", ""}, {"central", "", ""}, {"central:http", "", ""},
		{"a:b:c", "", ""},
		{"10.0.0.5:70000", "", ""}, {"http://x:1/", "", ""},
	}
	for _, tt := range tests {
		network, target, err := SplitAddress(tt.addr)
		if network != tt.network || target != tt.target || (err == nil) != (tt.network != "") ||
			(err != nil && !errors.Is(err, roost.Invalid)) {
			t.Errorf("%q: got %q, %q, %v", tt.addr, network, target, err)
		}
	}
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.sock")
	first, err := Listen("unix:"+path, 0o620)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o620 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if _, err := Listen("unix:"+path, 0o600); !errors.Is(err, roost.Conflict) {
		t.Errorf("beside a live one: got %v", err)
	}
	first.Close() // the file stays, as after a crash
	second, err := Listen("unix:"+path, 0o600)
	if err != nil {
		t.Fatalf("in the place of a dead one: %v", err)
	}
	second.Close()
	if _, err := Listen("unix:"+dir+"/none/x.sock", 0o600); err == nil {
		t.Errorf("in a directory that is not there: got no error")
	}
	third, err := Listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if _, err := Listen(third.Addr().String(), 0); !errors.Is(err, roost.Unavailable) ||
		!strings.Contains(err.Error(), "ss -ltnp") {
		t.Errorf("on a taken port: got %v, want what to do", err)
	}
}

func TestLongPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a directory that goes on and on/", 20))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	addr := "unix:" + filepath.Join(dir, "x.sock")
	l, err := Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dialUnix(context.Background(), strings.TrimPrefix(addr, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := Listen(addr, 0o600); !errors.Is(err, roost.Conflict) {
		t.Errorf("beside a live one: got %v", err)
	}
}
