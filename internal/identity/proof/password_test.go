package proof

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

const pamHeader = "/usr/include/security/pam_appl.h"

// newPAM builds roost-pam, and makes services of PAM in a directory of the test's own.
func newPAM(t *testing.T) (program, dir string) {
	t.Helper()
	if _, err := os.Stat(pamHeader); err != nil {
		t.Skipf("SKIPPED: passwords are not tested: %s is missing (apt-get install libpam0g-dev)", pamHeader)
	}
	dir = t.TempDir()
	program = filepath.Join(dir, "roost-pam")
	build := exec.Command("go", "build", "-tags", "pam,urfave_cli_no_docs,grpcnotrace", "-o", program,
		"../../../cmd/roost-pam")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// pam_exec gives the password to a program, with a NUL behind it
	check := "#!/bin/sh\nread -r p\n[ \"$PAM_USER:$PAM_RHOST:$p\" = \"ann:192.0.2.1:right + & % word\" ]\n"
	checker := filepath.Join(dir, "check")
	if err := os.WriteFile(checker, []byte(check), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ask":    "auth required pam_exec.so quiet expose_authtok " + checker + "\naccount required pam_permit.so\n",
		"permit": "auth required pam_permit.so\naccount required pam_permit.so\n",
		"deny":   "auth required pam_deny.so\naccount required pam_permit.so\n",
		"closed": "auth required pam_permit.so\naccount required pam_deny.so\n",
		"broken": "auth required pam_of_nobody.so\naccount required pam_permit.so\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return program, dir
}

func allowed(string) error { return nil }

// TestPasswords has PAM check passwords by services of several kinds.
func TestPasswords(t *testing.T) {
	program, dir := newPAM(t)
	for _, c := range []struct {
		service, user, password string
		kind                    error
	}{
		{"ask", "ann", "right + & % word", nil},
		{"ask", "ann", "wrong one", roost.PermissionDenied},
		{"ask", "bob", "right + & % word", roost.PermissionDenied},
		{"permit", "ann", "any", nil},
		{"permit", "root", "any", roost.PermissionDenied},
		{"deny", "ann", "any", roost.PermissionDenied},
		{"closed", "ann", "any", roost.PermissionDenied},
		{"broken", "ann", "any", roost.Unavailable},
		{"missing", "ann", "any", roost.Unavailable},
		{"permit", "", "any", roost.Invalid},
		{"permit", "ann\n", "any", roost.Invalid},
		{"permit", "ann", "", roost.Invalid},
		{"permit", "ann", "a\x00b", roost.Invalid},
		{"permit", "ann", strings.Repeat("x", MaxPassword+1), roost.Invalid},
		{"", "ann", "any", roost.PermissionDenied},
	} {
		v, err := NewVerifier(&config.WebSettings{PAMService: c.service, PAMDir: dir}, Programs{PAM: []string{program}})
		if err != nil {
			t.Fatal(err)
		}
		password := []byte(c.password)
		got, err := v.CheckPassword(t.Context(), PasswordTry{User: c.user, Password: password, From: "192.0.2.1",
			Check: func(user string) error {
				if user == "root" {
					return roost.PermissionDenied
				}
				return nil
			}})
		if !errors.Is(err, c.kind) || err == nil && got.Account != c.user {
			t.Errorf("%s of %q with %q: got %v, %v", c.service, c.user, c.password, got, err)
		}
		if err != nil && len(c.password) > 3 && strings.Contains(err.Error(), c.password) {
			t.Errorf("the error has the password: %v", err)
		}
		if bytes.ContainsFunc(password, func(r rune) bool { return r != 0 }) {
			t.Errorf("%s: the password is left in memory", c.service)
		}
	}
}

// TestPasswordTries counts tries by account and by address, right ones and wrong ones.
func TestPasswordTries(t *testing.T) {
	program, dir := newPAM(t)
	v, err := NewVerifier(&config.WebSettings{PAMService: "deny", PAMDir: dir}, Programs{PAM: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	v.now = func() time.Time { return now }
	try := func(user, from string) error {
		_, err := v.CheckPassword(t.Context(), PasswordTry{User: user, Password: []byte("x"), From: from,
			Check: allowed})
		return err
	}
	for range maxAttempts {
		if err := try("ann", "192.0.2.1"); !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("got %v", err)
		}
	}
	for _, c := range [][2]string{{"ann", "192.0.2.2"}, {"bob", "192.0.2.1"}} {
		if err := try(c[0], c[1]); !errors.Is(err, roost.Exhausted) {
			t.Errorf("%v: got %v", c, err)
		}
	}
	if err := try("bob", "192.0.2.2"); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("others: got %v", err)
	}
	now = now.Add(attemptWindow)
	if err := try("ann", "192.0.2.1"); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a minute later: got %v", err)
	}
}

// TestAccountsFile reads files that say who is who.
func TestAccountsFile(t *testing.T) {
	const text = "# value account\n\n f81d4fae ada \nDoe, Jane\tjane\nada@example.org ada\ntwice a\ntwice b\n"
	for value, want := range map[string]string{"f81d4fae": "ada", "Doe, Jane": "jane", "ada@example.org": "ada",
		"jane": "", "": "", "#": "", "F81D4FAE": "", "twice": ""} {
		if got, err := FindAccount([]byte(text), value); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
	if _, err := FindAccount([]byte("alone\n"), "x"); !errors.Is(err, roost.BadConfig) {
		t.Errorf("a line of one word: %v", err)
	}
}

// TestTickets seals tickets, and spends them once, for their purpose, in time.
func TestTickets(t *testing.T) {
	o, err := newTicketOffice()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newTicketOffice()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	seal := func(made time.Time) []byte {
		text, err := o.seal(ticket{ID: randomText(), Purpose: forProvider, Made: made})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := seal(now)
	changed := slices.Clone(good)
	changed[len(changed)-1] ^= 1
	for name, err := range map[string]error{
		"another purpose": second(o.spend(good, forStatement, now)),
		"another office":  second(other.spend(good, forProvider, now)),
		"changed":         second(o.spend(changed, forProvider, now)),
		"late":            second(o.spend(seal(now.Add(-TicketLife-time.Second)), forProvider, now)),
		"from the future": second(o.spend(seal(now.Add(time.Hour)), forProvider, now)),
		"empty":           second(o.spend(nil, forProvider, now)),
		"long":            second(o.spend(make([]byte, maxTicket+1), forProvider, now)),
	} {
		if !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := o.spend(good, forProvider, now); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if _, err := o.spend(good, forProvider, now); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("again: %v", err)
	}
}

func second(_ ticket, err error) error { return err }
