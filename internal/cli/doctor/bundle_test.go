package doctor

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// plantedSecrets are secrets in the forms in which they get into files and logs.
func plantedSecrets() map[string]string {
	const key = "Zq7Kp2Xw9Vb4Nm8Rt3Ls6Yd1Gh5Jf0Ca"
	return map[string]string{ // what a text says, and the part that is secret
		"client_secret = \"hunter-two\"":                                           "hunter-two",
		"  Password: \"open \\\" sesame\"":                                         "sesame",
		"db_passwd=letmein":                                                        "letmein",
		"API_KEY=abc123":                                                           "abc123",
		"AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI":                                     "wJalrXUtnFEMI",
		"Authorization: Bearer eyJhbGciOi.eyJzdWIi.c2ln":                           "eyJzdWIi",
		"Authorization: Basic dXNlcjpwYXNz":                                        "dXNlcjpwYXNz",
		"msg=\"dial postgres://roost:pgpass@db.example/x\"":                        "pgpass",
		"link http://127.0.0.1:8080/login#" + key:                                  key,
		"https://host.example/cb?code=onetime42":                                   "onetime42",
		"argv=\"mysql --password hunter3 --user x\"":                               "hunter3",
		"env SESSION_TOKEN=tiny":                                                   "tiny",
		"join token " + key:                                                        key,
		"claim " + key + " is over":                                                key,
		"-----BEGIN EC PRIVATE KEY-----\nMHcC\nAQEE\n-----END EC PRIVATE KEY-----": "MHcC",
		"-----BEGIN PRIVATE KEY-----\nMIGH\n":                                      "MIGH",
		"{\"refresh_token\": \"rt-1\", \"x\": 1}":                                  "rt-1",
		"digest 0f1e2d3c4b5a69788796a5b4c3d2e1f0":                                  "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
		"key AbCdEfGhIjKlMnOpQrStUvWxYz":                                           "AbCdEfGhIjKlMnOpQrStUvWxYz",
		"passphrase: 'correct horse battery'":                                      "horse",
		`msg="line 3: client_secret = \"hunter four\" is odd" x=1`:                 "four",
		`msg="got {\"password\": \"a \\\" b5\"}" x=1`:                              "b5",
	}
}

// TestRedactor: secrets go, and what an engineer needs stays.
func TestRedactor(t *testing.T) {
	r := newRedactor()
	for text, secret := range plantedSecrets() {
		if got := r.text(text); strings.Contains(got, secret) || !strings.Contains(got, removed) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{
		`time=2026-11-30T17:04:31.613Z level=WARN msg="log level changed" daemon=schedd level=DEBUG for=20s by=root`,
		`time=2026-11-30T17:04:35.131Z level=INFO msg=serves daemon=master what="startd n1.vm" pid=7841`,
		`collectors = ["host7.physics.example.org:9618", "unix:/var/lib/roost/run/collector.sock"]`,
		`Requirements = TARGET.Memory > 4096 && MY.KeyboardIdle > 900`,
		`unprivileged_userns_clone_restricted_by_the_kernel`,
		`roost_schedd_queued_tasks_total 17`,
		`dir = "/var/lib/roost"`,
	} {
		if got := r.text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestBundleHasNoSecrets plants secrets in every file of a node, and looks for them in
// the bundle.
func TestBundleHasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	n := &config.Node{Dir: dir, File: filepath.Join(dir, "etc/node.hcl")}
	n.Owner.File = filepath.Join(dir, "etc/owner.hcl")
	var all strings.Builder
	for text := range plantedSecrets() {
		if !strings.Contains(text, "BEGIN PRIVATE") { // without an end it would hide what follows
			fmt.Fprintf(&all, "%s\n", text)
		}
	}
	all.WriteString("visible\n")
	for _, name := range []string{"etc/node.hcl", "etc/owner.hcl", "log/schedd.log", "log/schedd.log.1",
		"log/master.log", "run/master.json", "run/log-levels.json", "schedd/queue.db",
		"authority/ca.key", "negotiator/secret-keys",
		"schedd/spool/out"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text := all.String()
		if strings.HasPrefix(name, "log/") {
			text = "x\npassword=" + strings.Repeat("topsecret ", maxBundleLog/10) + "\n" + text
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "bundle.tar.gz")
	a, _, stderr := newDoctorApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "doctor", "--bundle", file, "--config", n.File}); code > 1 {
		t.Logf("exit status %d: %s", code, stderr)
	}
	b := &bundle{redact: newRedactor(), texts: map[string]string{}}
	b.addNode(n)
	b.addKernel()
	b.addJSON("doctor.json", []checkResult{{"x", levelError, all.String(), all.String()}})
	if len(b.names) < 12 {
		t.Errorf("the bundle has only %q", b.names)
	}
	check := func(name, text string) {
		for planted, secret := range plantedSecrets() {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret of %q", name, planted)
			}
		}
		if strings.Contains(text, "topsecret") {
			t.Errorf("%s has the end of a line whose begin was cut off", name)
		}
		if strings.HasPrefix(name, "log/") && !strings.Contains(text, "visible") {
			t.Errorf("%s has nothing left: %.200q", name, text)
		}
	}
	for name, text := range b.texts {
		check(name, text)
		if strings.Contains(name, "queue.db") || strings.Contains(name, "ca.key") {
			t.Errorf("%s is in the bundle", name)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("%v; the command said %s", err, stderr)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for archive := tar.NewReader(zip); ; count++ {
		h, err := archive.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		check(name, string(text))
	}
	if count < 10 {
		t.Errorf("%d files in the archive", count)
	}
}
