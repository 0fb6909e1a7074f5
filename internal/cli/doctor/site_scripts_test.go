package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// TestSiteScripts checks what doctor says of programs of the site.
func TestSiteScripts(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, mode os.FileMode) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		os.Chmod(at, mode)
		return at
	}
	n := &config.Node{Dir: dir, Schedd: &config.ScheddSettings{
		Filter: config.SubmitFilter{Program: path("good", 0o755), User: "nobody"},
		Hooks:  config.JobHooks{Start: filepath.Join(dir, "missing"), End: path("open", 0o777), User: "nobody"},
	}, Startds: []config.StartdSettings{{Name: "n1", Scripts: config.AttemptScripts{Prologue: path("plain", 0o644),
		Epilogue: path("private", 0o700), User: "no-such-user"}}}}
	want := []struct {
		level      checkLevel
		text, cure string
	}{
		{levelOK, "submit_filter: ", ""},
		{levelError, "job_hooks start: ", "put the program there"},
		{levelError, "others may write there", "chmod 755"},
		{levelError, "prologue of n1: ", "chmod 755"},
		{levelError, "no-such-user", "name an account"},
	}
	if os.Geteuid() != 0 {
		want[4].level, want[4].text, want[4].cure = levelOK, "epilogue of n1", ""
	}
	got := examineSiteScripts(n)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		if f := got[i]; f.Level != w.level || !strings.Contains(f.Text, w.text) || !strings.Contains(f.Hint, w.cure) {
			t.Errorf("got %+v, want %+v", f, w)
		}
	}
	n.Startds[0].Scripts.User = "nobody"
	if f := examineSiteScripts(n)[4]; os.Geteuid() == 0 && f.Level != levelWarning {
		t.Errorf("a program that its user cannot execute: %+v", f)
	}
}
