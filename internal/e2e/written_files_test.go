package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// writtenFile is a kind of file below the directory of a pool or a node. It says who
// reads the file, and what a damaged one leads to.
type writtenFile struct {
	path string // a regular expression
	// package and test that damages it at random; empty: nothing acknowledged depends on
	// it
	test         string
	noTestReason string // why there is no test
}

// writtenFiles lists all files that daemons write. ROOST_DAMAGES=1000 lets each test try
// a thousand damages.
func writtenFiles() []writtenFile {
	return []writtenFile{
		{`schedd/queue\.db(\.mark|\.log/.*|\.log\.mark)?`, "schedd/journal TestRepairs", ""},
		{`schedd/feed\.(log/.*|log\.mark|damaged/.*)`, "schedd/feed TestDamage", ""},
		{`accountant/.*`, "", "copies, which come back from the histories; SQLite has no checksums of its pages"},
		{`schedd/history\.db(\.mark)?`, "schedd/history TestDamage", ""},
		{`(schedd|authority)/[a-z]+\.db\.(damaged-.*|new)`, "", "the file before a repair, which is for people"},
		{`schedd/reserve`, "", "room that is kept for the log; what is in it is never read"},
		{`schedd/notices/.*\.json`, "internal/spool TestDamage", ""},
		{`schedd/hook-ends/.*\.json`, "internal/spool TestDamage", ""},
		{`schedd/uploads/.*\.json`, "schedd/transfer TestUploadDamage", ""},
		{`schedd/scripts/.*`, "", "named by its digest, which is compared"},
		{`schedd/spool/.*`, "", "output of a task on its way to its user"},
		{`(schedd|startd/[^/]+)/checkpoints?/.*`, "checkpoint/image TestDamage", ""},
		{`(schedd|startd/[^/]+)/images/.*`, "checkpoint/image TestDamage", ""},
		{`checkpoint-server/\.blobs/.*`, "internal/store TestDamage", ""},
		{`checkpoint-server/\.packages/.*`, "checkpoint/packages TestDamage", ""},
		{`checkpoint-server/\.files/.*`, "schedd/transfer TestScriptServer", ""},
		{`schedd/logins/logins\.json`, "internal/identity/login TestDamage", ""},
		{`(authority|schedd/logins)/authority\.db(\.mark)?`, "internal/identity/ca TestRepair", ""},
		{`(authority|schedd/logins)/ca\.(pem|key)`, "internal/identity/ca TestDamagedKeys", ""},
		{`(authority|pki|schedd/logins)/.*crl\.pem(\.copy)?`, "internal/identity/pki TestDamagedRevocations", ""},
		{`(authority|pki|schedd/logins)/.*\.(pem|key)`, "internal/identity/pki TestDamage", ""},
		{`cell-queue/replica/.*`, "internal/replica TestDamage", ""},
		{`cell-queue/schedd/replacing`, "", "it says that the journal is being replaced; what is in it is never read"},
		{`cell-queue/schedd/history-gap`, "", "a number; unread it stands for all: more is fetched than is lacking"},
		{`negotiator/replica/.*`, "internal/replica TestDamage", ""},
		{`negotiator/secret-keys`, "negotiator/sealing TestDamage", ""},
		{`startd/[^/]+/claims/[0-9]+/(claim|attempt)`, "startd/claim TestDamage", ""},
		{`startd/[^/]+/claims/generation`, "startd/claim TestDamage", ""},
		{`startd/[^/]+/claims/ports`, "startd TestDamage", ""},
		{`startd/[^/]+/(reliability|today|cpu_speed)`, "startd TestDamage", ""},
		{`startd/[^/]+/claims/[0-9]+/journal`, "startd/starter/proto TestDamage", ""},
		{`startd/[^/]+/claims/[0-9]+/(starter\.log|lock|ready|log|sock|box|pid)`,
			"", "of the running starter: a lock, or words for people"},
		{`startd/[^/]+/containers/blobs/.*`, "internal/store TestDamage", ""},
		{`startd/[^/]+/input-cache/.*`, "startd/inputcache TestDamage", ""},
		{`startd/[^/]+/(io|scratch|tmp|jobs)/.*`, "", "the task's own data"},
		{`run/.*`, "", "what is so now: written anew at each start"},
		{`(etc|log)/.*`, "", "text that people read or write"},
	}
}

// checkWritten compares the files of the script's pool with the list.
func checkWritten(ts *testscript.TestScript, neg bool, args []string) {
	dir := scriptPoolOf(ts).options.Dir
	rows := make([]*regexp.Regexp, 0, 32)
	for _, w := range writtenFiles() {
		rows = append(rows, regexp.MustCompile("^"+w.path+"$"))
	}
	n := 0
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file that has just been removed
		}
		name := strings.TrimPrefix(path, dir+"/")
		for _, row := range rows {
			if row.MatchString(name) {
				n++
				return nil
			}
		}
		ts.Fatalf("a daemon writes %s: say in writtenFiles which test damages it", name)
		return nil
	}))
	if n < 10 {
		ts.Fatalf("%d files are in %s", n, dir)
	}
}

// damageWords flips two bits of each place in a file that has certain words.
func damageWords(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage file words")
	}
	b, err := os.ReadFile(args[0])
	ts.Check(err)
	places := 0
	for at := bytes.Index(b, []byte(args[1])); at >= 0; at = bytes.Index(b, []byte(args[1])) {
		b[at+1] ^= 5
		places++
	}
	if places == 0 {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(args[0], b, 0o600))
}

// TestWrittenFiles checks that each file of a daemon has a test that damages it. The test
// must exist and use ROOST_DAMAGES.
func TestWrittenFiles(t *testing.T) {
	for _, w := range writtenFiles() {
		if w.test == "" {
			if w.noTestReason == "" {
				t.Errorf("%s has neither a test nor a reason", w.path)
			}
			continue
		}
		dir, name, _ := strings.Cut(w.test, " ")
		sources, err := filepath.Glob("../../" + dir + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte("func "+name+"(")) && bytes.Contains(text, []byte("damage."))
		}
		if !found {
			t.Errorf("%s: %s has no %s that uses internal/damage", w.path, dir, name)
		}
	}
}
