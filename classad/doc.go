// Package classad implements the ClassAd language. In it, machines and jobs describe
// themselves and state what they require of each other.
//
// An [Ad] is an ordered set of attributes, each a name and an expression. [Parse] reads
// HTCondor's new syntax, [ParseOld] its line syntax, and encoding/json its JSON form.
// Expressions are immutable trees ([Expr]). The result of an evaluation is a [Value],
// which may be UNDEFINED (something is unknown) or ERROR (something makes no sense), and
// never a Go error or a panic. [Match] evaluates the Requirements of two ads against each
// other.
//
// Lists and nested ads are lazy: an element is evaluated when it is used. Its names are
// looked up in a scope. For nested ads and for the result of a subscript, that is the
// scope in which they are written; for what a function or a selection takes from a list,
// it is the scope of the function or selection. [Expr.String] and [Ad.String] print
// everything that was read, parentheses included, so that parsing the text gives the same
// expression; [Value.String] prints values as HTCondor shows results. [Conjuncts] and
// [References] take an expression apart, and [Reasons] explains why two ads do not match.
//
// To match one ad with thousands, put these into a [Table]. [Table.Compile] turns a
// request into code over the columns of the table. It gives the same result as [Match],
// but costs a few nanoseconds for each ad instead of microseconds. [Query.Explain] counts
// the ads that each condition excludes.
//
// The semantics are those of HTCondor's engine as HTCondor runs it (manual, "ClassAds";
// src/classad at release 25), with the scope fallback of old ClassAds: a name that an ad
// does not have is looked up in the other ad of a match, unless the ad is nested in
// another. Where the manual and the engine disagree, the engine is right, except for its
// plain bugs:
//
//   - relTime("…") is a relative time, not a real.
//   - an integer literal that does not fit 64 bits is refused, where upstream reads 0.
//   - int() of NaN or an infinity is ERROR, and so is a relative time that is not finite,
//     where upstream's C++ is undefined.
//   - int("9007199254740993") is that number, not the nearest real.
//   - times are not cut to 32 bits: absTime(3000000000) is in 2065.
//   - list =?= list is always ERROR.
//   - an attribute that depends on itself is UNDEFINED.
//   - stringListMax of negative numbers is the greatest of them, and stringListMin of
//     huge ones the least.
//   - regexps(…, "g") and replaceAll() with a pattern that matches the empty string at
//     the end replace that, too, instead of being ERROR.
//   - absTime(x, n) and relTime(x) read a computed string as they do a literal one.
//   - ad["name"] of a nested ad still finds names in the ads around it, and so does
//     {ad}.name; the first argument of evalInEachContext
//     and countMatches does not change where their second is looked up.
//   - absTime("…") with a literal that names no zone is in UTC, not in the zone of
//     the process that reads it.
//   - userMap, which upstream looks up in a file, returns its default, and so does
//     userHome, as upstream does in its default configuration.
//   - regular expressions are RE2's (package regexp): linear time, without
//     back-references and look-around, which give ERROR.
//
// The package is pure: no I/O, no clock, no goroutines, no global state. Expressions get
// the time and random numbers from an [EvalEnv]. Every evaluation is bounded in depth and
// steps, and every parse in size and depth, so that no input hangs or crashes.
package classad
