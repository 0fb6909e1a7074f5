package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// sqlCalls are the methods that take a statement, and which argument it is.
func sqlCalls() map[string]int {
	return map[string]int{
		"ExecContext": 1, "QueryContext": 1, "QueryRowContext": 1, "PrepareContext": 1,
		"Exec": 0, "Query": 0, "QueryRow": 0, "Prepare": 0,
	}
}

// TestW17StatementsAreConstants holds that no statement is made from variables. What the
// methods of databases get is a constant of this package, or a variable that only such
// constants or the files of the schema can reach.
func TestW17StatementsAreConstants(t *testing.T) {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	must(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			files[name], err = parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			must(t, err)
		}
	}
	constants := map[string]bool{}
	for _, f := range files {
		constantNames(f, constants)
	}
	// Each of these is set from constants alone, which the loop below checks where they
	// are passed: as arguments of these names.
	passed := map[string]bool{
		"text": true, "columns": true, "t.text": true, "p.text": true, "t.merge": true,
		"t.stage": true, "s.version": true,
		"s.advance": true,
		"q.text":    true, "q.single": true, "q.arrays": true, "insert.single": true, "insert.arrays": true,
		"string(text)": true, // a file of the schema
	}
	calls := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				prepared := expression(sel.X) == "statement"
				if at, ok := sqlCalls()[sel.Sel.Name]; ok && len(n.Args) > at && !prepared {
					calls++
					text := expression(n.Args[at])
					if _, literal := n.Args[at].(*ast.BasicLit); !literal && !constants[text] && !passed[text] {
						t.Errorf("%s: the statement is %s, which is no constant", fset.Position(n.Pos()), text)
					}
				}
				if sel.Sel.Name == "Sprintf" || sel.Sel.Name == "Sprint" || sel.Sel.Name == "Join" ||
					sel.Sel.Name == "Replace" {
					for _, arg := range n.Args {
						if isSQL(expression(arg)) || constants[expression(arg)] {
							t.Errorf("%s: a statement is made by %s", fset.Position(n.Pos()), sel.Sel.Name)
						}
					}
				}
			case *ast.BinaryExpr:
				if n.Op == token.ADD && (isStatement(n.X, constants) != isStatement(n.Y, constants)) {
					t.Errorf("%s: a statement is added to what is no constant", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if calls < 40 {
		t.Errorf("only %d calls were looked at", calls)
	}
}

// constantNames adds the constants of a file that are statements, or pieces of one.
func constantNames(f *ast.File, names map[string]bool) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) && strings.Contains(expression(v.Values[i]), "`") {
					names[name.Name] = true
				}
			}
		}
	}
}

// isStatement reports whether an expression is a constant with SQL, or a sum of such.
func isStatement(e ast.Expr, constants map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BasicLit:
		return e.Kind == token.STRING && strings.HasPrefix(e.Value, "`")
	case *ast.BinaryExpr:
		return isStatement(e.X, constants) && isStatement(e.Y, constants)
	}
	return false
}

// isSQL reports whether a literal begins as a statement does.
func isSQL(text string) bool {
	text = strings.ToUpper(strings.Trim(text, "`\" "))
	for _, verb := range []string{"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "DROP ", "ALTER "} {
		if strings.HasPrefix(text, verb) {
			return true
		}
	}
	return false
}

// expression returns the text of a simple expression.
func expression(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.BasicLit:
		return e.Value
	case *ast.SelectorExpr:
		return expression(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return expression(e.Fun) + "(" + expression(e.Args[0]) + ")"
		}
	case *ast.BinaryExpr:
		return expression(e.X) + " + " + expression(e.Y)
	}
	return "an expression"
}
