package attack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestAll checks that each attack has a unique name, which begins with its component, and
// a place in the code.
func TestAll(t *testing.T) {
	parts := []string{"schedd", "startd", "negotiator", "collector", "client"}
	seen := map[AttackKind]bool{}
	for _, a := range All() {
		part, what, _ := strings.Cut(string(a), ".")
		known := false
		for _, p := range parts {
			known = known || p == part
		}
		if seen[a] || !known || what == "" {
			t.Errorf("attack %q: want a name of its own, and one of %v before its dot", a, parts)
		}
		seen[a] = true
	}
	places := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(filepath.Dir(path)) == "attack" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Is" {
					if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "attack" {
						if arg, ok := call.Args[0].(*ast.SelectorExpr); ok {
							places[arg.Sel.Name] = true
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(places) != len(All()) {
		t.Errorf("%d attacks have names, and there are places for %v", len(All()), places)
	}
}
