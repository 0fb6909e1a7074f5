/* A reader of JSON (RFC 8259) for the answers of roost api. */
#include <stdlib.h>
#include <string.h>

#include "roost_drmaa.h"

#define DEEPEST 64

struct reader {
	const char *at, *end;
	unsigned depth;
};

static struct json *read_value(struct reader *r);

static void skip_space(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool skip_char(struct reader *r, char c)
{
	skip_space(r);
	if (r->at >= r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool skip_word(struct reader *r, const char *word)
{
	size_t size = strlen(word);
	if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
		return false;
	r->at += size;
	return true;
}

static bool read_hex(struct reader *r, unsigned *value)
{
	*value = 0;
	for (int i = 0; i < 4; i++, r->at++) {
		if (r->at >= r->end)
			return false;
		char c = *r->at;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (c | 32) >= 'a' && (c | 32) <= 'f' ?
			(unsigned)((c | 32) - 'a' + 10) : 16;
		if (digit == 16)
			return false;
		*value = *value * 16 + digit;
	}
	return true;
}

static void add_rune(struct text *t, unsigned c)
{
	char bytes[4];
	size_t n = 0;
	if (c < 0x80) {
		bytes[n++] = (char)c;
	} else if (c < 0x800) {
		bytes[n++] = (char)(0xc0 | c >> 6);
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		bytes[n++] = (char)(0xe0 | c >> 12);
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	} else {
		bytes[n++] = (char)(0xf0 | c >> 18);
		bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	}
	text_add_bytes(t, bytes, n);
}

/* read_escape reads what follows a backslash. A zero byte cannot be in a text of C. */
static bool read_escape(struct reader *r, struct text *t)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (r->at >= r->end)
		return false;
	char c = *r->at++;
	const char *simple = c ? strchr(from, c) : NULL;
	if (simple != NULL) {
		text_add_bytes(t, &to[simple - from], 1);
		return true;
	}
	unsigned high, low;
	if (c != 'u' || !read_hex(r, &high))
		return false;
	if (high >= 0xd800 && high < 0xdc00) {
		if (!skip_word(r, "\\u") || !read_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	add_rune(t, high == 0 ? 0xfffd : high);
	return true;
}

static char *read_string(struct reader *r)
{
	struct text t = {0};
	if (!skip_char(r, '"'))
		return NULL;
	text_add_bytes(&t, "", 0);
	while (r->at < r->end && *r->at != '"') {
		if (*r->at == '\\') {
			r->at++;
			if (!read_escape(r, &t))
				break;
			continue;
		}
		const char *from = r->at;
		while (r->at < r->end && *r->at != '"' && *r->at != '\\')
			r->at++;
		text_add_bytes(&t, from, (size_t)(r->at - from));
	}
	if (r->at >= r->end || *r->at != '"' || t.failed) {
		text_free(&t);
		return NULL;
	}
	r->at++;
	return t.data;
}

/* read_members reads the rest of an array or an object. */
static bool read_members(struct reader *r, struct json *j, char close)
{
	struct json **last = &j->first;
	if (skip_char(r, close))
		return true;
	do {
		char *name = NULL;
		if (j->type == JSON_OBJECT && ((name = read_string(r)) == NULL || !skip_char(r, ':'))) {
			free(name);
			return false;
		}
		if ((*last = read_value(r)) == NULL) {
			free(name);
			return false;
		}
		(*last)->name = name;
		last = &(*last)->next;
	} while (skip_char(r, ','));
	return skip_char(r, close);
}

/* read_number does without strtod, whose decimal point depends on the program's locale. */
static bool read_number(struct reader *r, struct json *j)
{
	bool negative = skip_word(r, "-"), found = false;
	double value = 0, scale = 1;
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, found = true)
		value = value * 10 + (*r->at - '0');
	if (skip_word(r, "."))
		for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
			value += (*r->at - '0') * (scale /= 10);
	if (found && (skip_word(r, "e") || skip_word(r, "E"))) {
		bool small = skip_word(r, "-");
		int power = 0;
		skip_word(r, "+");
		for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
			power = power < 400 ? power * 10 + (*r->at - '0') : power;
		for (; power > 0; power--)
			value = small ? value / 10 : value * 10;
	}
	j->type = JSON_NUMBER;
	j->number = negative ? -value : value;
	return found;
}

static bool read_into(struct reader *r, struct json *j)
{
	skip_space(r);
	if (r->at >= r->end)
		return false;
	switch (*r->at) {
	case '{':
		r->at++;
		j->type = JSON_OBJECT;
		return read_members(r, j, '}');
	case '[':
		r->at++;
		j->type = JSON_ARRAY;
		return read_members(r, j, ']');
	case '"':
		j->type = JSON_STRING;
		return (j->string = read_string(r)) != NULL;
	case 't':
		j->type = JSON_BOOL;
		j->number = 1;
		return skip_word(r, "true");
	case 'f':
		j->type = JSON_BOOL;
		return skip_word(r, "false");
	case 'n':
		return skip_word(r, "null");
	}
	return read_number(r, j);
}

static struct json *read_value(struct reader *r)
{
	struct json *j = r->depth < DEEPEST ? calloc(1, sizeof *j) : NULL;
	if (j == NULL)
		return NULL;
	r->depth++;
	bool read = read_into(r, j);
	r->depth--;
	if (read)
		return j;
	json_free(j);
	return NULL;
}

struct json *json_parse(const char *s, size_t size)
{
	struct reader r = {s, s + size, 0};
	struct json *j = s == NULL ? NULL : read_value(&r);
	skip_space(&r);
	if (j != NULL && r.at != r.end) {
		json_free(j);
		return NULL;
	}
	return j;
}

void json_free(struct json *j)
{
	while (j != NULL) {
		struct json *next = j->next;
		json_free(j->first);
		free(j->string);
		free(j->name);
		free(j);
		j = next;
	}
}

const struct json *json_member(const struct json *j, const char *name)
{
	if (j == NULL || j->type != JSON_OBJECT)
		return NULL;
	for (const struct json *m = j->first; m != NULL; m = m->next)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

const char *json_text(const struct json *j, const char *name)
{
	const struct json *m = json_member(j, name);
	return m != NULL && m->type == JSON_STRING ? m->string : "";
}

double json_number(const struct json *j, const char *name)
{
	const struct json *m = json_member(j, name);
	return m != NULL && (m->type == JSON_NUMBER || m->type == JSON_BOOL) ? m->number : 0;
}
