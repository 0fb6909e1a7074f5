package importlint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestWalk checks that the functions that the table in doc.go names are in the tree.
func TestWalk(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(file.Doc.Text(), "# One job")
	table, _, _ = strings.Cut(table, "A file has the name")
	functions := map[string]bool{}
	for _, s := range nonTestFiles(t) {
		for _, d := range s.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				functions[s.pkg+" "+receiverName(f)+"."+f.Name.Name] = true
			} else if ok {
				functions[s.pkg+" "+f.Name.Name] = true
			}
		}
	}
	steps := 0
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); strings.HasPrefix(line, "\t") && len(words) > 2 {
			steps++
			if !functions[words[1]+" "+words[2]] {
				t.Errorf("doc.go: there is no function %s in %s", words[2], words[1])
			}
		}
	}
	if steps < 20 {
		t.Errorf("doc.go: the table has %d steps", steps)
	}
}
