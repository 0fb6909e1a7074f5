package importlint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writtenFiles lists every source file that writes files. A row says how damage is
// noticed: a flipped bit, or a cut. A new source file fails the test until it has a row.
func writtenFiles() map[string]string {
	const (
		records  = "a checksum for each record, a seal and a mark: internal/boltfile TestDamage"
		sum      = "a line with its checksum: internal/filesum TestEveryBit"
		replica  = "a checksum for each entry and snapshot, and a mark: internal/replica TestDamage"
		digest   = "the name or the sender has the digest, which is compared when it is read"
		signed   = "certificates are signed, and a key that does not fit its certificate is refused"
		remade   = "it says what is so now, and is written anew at each start"
		people   = "text that people read or write"
		userdata = "the user's own data, on its way"
		kernel   = "a file of the kernel, or a lock without contents"
		image    = "part of a checkpoint image, which has a digest: checkpoint/image"
	)
	return map[string]string{
		"internal/boltfile/open.go":         records,
		"schedd/journal/disk_reserve.go":    "room that is kept; what is in it is never read",
		"schedd/transfer/spool_writer.go":   userdata,
		"internal/spool/spool.go":           sum,
		"schedd/transfer/object_uploads.go": sum,
		"schedd/transfer/job_scripts.go":    digest,
		"schedd/transfer/stored_files.go":   "a file without a name, which is then stored by its digest",
		"schedd/cellqueue/member.go":        "an empty file, which is there or not",
		"schedd/cellqueue/history_fetch.go": "unread it stands for all: more is fetched than is lacking",
		"internal/appendlog/open.go":        "a checksum for each entry, and a mark: internal/appendlog TestDamage",
		"internal/logmark/mark_file.go":     "a checksum: internal/logmark TestMark",
		"internal/replica/repair.go":        replica,
		"negotiator/sealing/key_store.go":   "each key has its digest: negotiator/sealing TestDamage",
		"internal/replica/disk_store.go":    kernel,

		"internal/replica/snapshot_store.go":  replica,
		"internal/replica/member_identity.go": "a checksum, and a second copy: internal/replica TestDamage",
		"internal/identity/login/store.go":    sum,
		"internal/identity/login/client.go":   people,
		"internal/identity/pki/files.go":      signed,
		"internal/master/logfile.go":          people,
		"internal/master/run.go":              "an empty file, which has log levels later",
		"internal/daemon/log_level.go":        "what cannot be read is named in the log; the usual level stays",
		"internal/master/node_state.go":       remade,
		"internal/master/up_pool.go":          people,
		"internal/daemon/profile.go":          people,

		"startd/claim/claim_file.go":             sum,
		"startd/reliability_tracker.go":          sum,
		"startd/cpu_speed.go":                    sum,
		"startd/daily_stats.go":                  sum,
		"startd/ports.go":                        sum,
		"startd/gpudriver/driver_files.go":       "a copy of files of the system, checked as they are",
		"startd/claim/adopted_claim.go":          sum,
		"startd/claim/runner.go":                 sum,
		"startd/desktop/guard/owner_pause.go":    sum,
		"startd/desktop/guard/startd_records.go": sum,
		"startd/desktop/guard/run.go":            kernel,
		"startd/claim/checkpoint_self.go":        image,
		"startd/claim/output_message.go":         people,
		"startd/claim/claim_dirs.go":             userdata,
		"startd/inputcache/transfer.go":          "their digest, compared at each use: TestDamage",
		"startd/streams/file_transfer.go":        userdata,
		"startd/claim/checkpoint_restore.go":     userdata,
		"internal/store/x":                       "a digest for each chunk, and checksums: internal/store TestDamage",
		"checkpoint/store/x":                     digest,
		"checkpoint/packages/x":                  sum,
		"checkpoint/image/x":                     image,
		"checkpoint/criu/x":                      image,
		"startd/starterclient/x":                 "a checksum for each record of its journal: startd/starter/proto",
	}
}

// TestWrittenFiles holds the table against the code, both ways.
func TestWrittenFiles(t *testing.T) {
	table, used := writtenFiles(), map[string]bool{}
	for _, tree := range []string{"schedd", "startd", "negotiator", "collector", "checkpoint", "internal/replica",
		"internal/identity/login", "internal/identity/pki", "internal/identity/ca", "internal/master",
		"internal/daemon",
		"internal/userfiles", "internal/logmark", "internal/appendlog", "internal/boltfile", "internal/store",
		"internal/spool",
		"internal/cgroup"} {
		err := filepath.WalkDir(filepath.Join("..", "..", tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(filepath.Clean(path),
				filepath.Join("..", "..")+string(filepath.Separator)))
			writes, err := writesFiles(path)
			if err != nil || !writes {
				return err
			}
			row := name
			if table[row] == "" {
				row = filepath.ToSlash(filepath.Dir(name)) + "/x"
			}
			if table[row] == "" {
				t.Errorf("%s writes a file: say in the table of this test how a flipped bit in it is noticed", name)
			}
			used[row] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(table)) {
		if !used[row] {
			t.Errorf("%s is in the table, and writes no file", row)
		}
	}
}

// writesFiles reports whether a source file calls what makes or writes files.
func writesFiles(path string) (writes bool, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return false, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && callsAny(sel, "atomicfile", "Write", "WriteDurable") {
			writes = true
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, _ := f.X.(*ast.Ident)
		if pkg == nil || pkg.Name != "os" && pkg.Name != "bolt" {
			return true
		}
		switch f.Sel.Name {
		case "WriteFile", "Create", "CreateTemp", "CopyFS":
			writes = true
		case "Open":
			writes = writes || pkg.Name == "bolt"
		case "OpenFile":
			ast.Inspect(call, func(n ast.Node) bool {
				if flag, ok := n.(*ast.SelectorExpr); ok &&
					(flag.Sel.Name == "O_CREATE" || flag.Sel.Name == "O_APPEND") {
					writes = true
				}
				return true
			})
		}
		return true
	})
	return writes, nil
}
