package mutant

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestAll checks that each bug has a name, a guarantee and a place in the running code.
// Each guarantee must have a bug.
func TestAll(t *testing.T) {
	broken, seen, placed := map[int]bool{}, map[string]bool{}, map[string]int{}
	for _, b := range All() {
		if b.String() == "" || seen[b.String()] || b.Guarantee() < 1 || b.Guarantee() > 34 {
			t.Errorf("bug %d is named %q, and breaks P%d", b, b, b.Guarantee())
		}
		broken[b.Guarantee()], seen[b.String()] = true, true
	}
	if len(broken) != 34 || len(All()) < 25 {
		t.Errorf("%d bugs break %d promises", len(All()), len(broken))
	}
	for _, dir := range []string{"collector", "schedd", "startd", "negotiator", "internal/sim/consensus",
		"internal/provision", "internal/accounting"} {
		err := filepath.WalkDir("../../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if arg, is := call.Args[0].(*ast.SelectorExpr); ok && is && f.Sel.Name == "Active" {
					if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "mutant" {
						placed[arg.Sel.Name]++
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(placed) != len(All()) {
		t.Errorf("%d bugs have names, and there are places for %v", len(All()), placed)
	}
}
