// Package config is what a node file says: which daemons run on a node, where they
// listen, what they may hand out. It also holds the one rule by which commands find their
// pool.
package config
