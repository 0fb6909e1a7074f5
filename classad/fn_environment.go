package classad

func environmentBuiltin(name string) builtin { return builtin{} }
