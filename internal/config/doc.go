// Package config reads node files, which configure the daemons of a node: where they
// listen and what resources they offer. It also has the one rule by which commands find
// their pool.
package config
