# SPDX-License-Identifier: Apache-2.0
"""Makes the manual from its template and from the help of the program.

What `trireme help` and `trireme COMMAND --help all` list replaces the lines @SYNOPSIS@, @COMMANDS@
and @OPTIONS@ of the template. At its end, a line "@about NAME" begins what the manual adds to the
help of a command (data), of an option (--data) or of an option of one command (data --check).
There, a line @ITEMS@ becomes what the command's help lists besides options.
Usage: manual.py TEMPLATE TRIREME >trireme.1"""
import re
import subprocess
import sys
import textwrap

TEXT = 21  # the column of the texts in help


def help_of(program, *words):
    run = subprocess.run([program, *words], check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.split("\n")


def marked(text, arguments=""):
    """The text in roff: options bold, the names of arguments and text in backquotes as such."""
    text = text.replace("\\", "\\e")
    names = "|".join(re.findall("[A-Z]+", arguments))
    if names:
        text = re.sub(rf"(?<![\w`])({names})(?![\w`])", r"\\fI\1\\fR", text)
    text = re.sub(r"`([^`]*)`", r"\\(oq\1\\(cq", text)
    bold = lambda m: rf"\fB{m[1]}\fR".replace("-", r"\-")
    return re.sub(r"(?<![\w\\-])(--?[a-z][a-z-]*)", bold, text)


def wrapped(text, arguments=""):
    text = marked(text, arguments)
    lines = textwrap.wrap(text, 80, break_long_words=False, break_on_hyphens=False)
    return "\n".join(re.sub(r"^(?=[.'])", r"\\&", line) for line in lines)


def sentence(text, arguments=""):
    return wrapped(text[0].upper() + text[1:] + ("" if text[-1] in ".:" else "."), arguments)


class Option:
    def __init__(self, head, group):
        self.flag, self.argument = (head.split() + [""])[:2]
        self.group = group
        self.text, self.values = "", []  # values: what the option takes, "VALUE: meaning"

    def add(self, column, text):
        if column == TEXT + 2:
            self.values.append(text)
        elif column > TEXT:
            self.values[-1] += " " + text
        else:
            self.text += " " * bool(self.text) + text

    def key(self):
        return self.flag, self.argument, self.text


def options_of(lines):
    """The options in a command's help, which end at the first line that is none of theirs."""
    options, group = [], ""
    for line in lines:
        if re.match(r"  -", line):
            options.append(Option(line[:TEXT] if line[TEXT - 1:TEXT] in ("", " ") else line, group))
            text = line[TEXT:] if line[TEXT - 1:TEXT] == " " else ""
            if text:
                options[-1].add(TEXT, text)
        elif options and line.startswith(" " * TEXT):
            options[-1].add(len(line) - len(line.lstrip()), line.strip())
        elif re.match(r"[A-Z][\w ]*:$", line):
            group = line[:-1]
        elif options and line:
            break
    return options


def items_of(lines):
    """What else a help lists, such as columns: (name, text)."""
    items = []
    for line in lines:
        if re.match(r"  [^ -]", line):
            items.append([line[:TEXT].strip(), line[TEXT:]])
        elif items and line.startswith(" " * TEXT):
            items[-1][1] += " " + line.strip()
    return items


class Manual:
    def __init__(self, template, program):
        text, *about = re.split(r"^@about (.*)\n", template, flags=re.M)
        self.template = text
        self.about = dict(zip(about[::2], about[1::2]))
        names = re.findall(r"^  ([a-z ]*[a-z])   *[a-z]", "\n".join(help_of(program, "help")), re.M)
        self.help = {name: help_of(program, *name.split(), "--help", "all") for name in names}

    def option(self, o, command=""):
        about = self.about.pop(f"{command} {o.flag}".strip(), "")
        yield f".It Fl {o.flag[1:]} {'Ar ' + o.argument if o.argument else ''}".rstrip()
        yield sentence(o.text, o.argument)
        listed = ".It " in about  # the values, in more words
        if o.values and not listed:
            yield ".Bl -tag -width Ds -compact"
            for value, meaning in (v.split(": ", 1) for v in o.values):
                yield f".It Cm {value}\n{wrapped(meaning, o.argument)}"
            yield ".El"
        for value in o.values if listed else []:
            name = re.match(r"\w+", value)[0]
            if not re.search(rf"^\.It .*Cm .*\b{name}\b", about, re.M):
                sys.exit(f"manual.py: @about {o.flag} lacks its value {name}")
        yield about.rstrip("\n")

    def synopsis(self):
        for name, lines in self.help.items():
            arguments = lines[0].removeprefix(f"usage: trireme {name}").strip()
            yield f".Nm\n.Cm {name}\n{wrapped(arguments, arguments)}".rstrip()

    def commands(self):
        yield ".Bl -tag -width Ds"
        for name, lines in self.help.items():
            items = "\n".join(f".It Cm {item}\n{wrapped(text)}" for item, text in items_of(lines))
            about = self.about.pop(name, "").replace("@ITEMS@", items)
            yield f".It Cm {name}\n{sentence(lines[1])}\n{about}".rstrip("\n")
        yield ".El"

    def options(self):
        """Those of train by group, then of each other command those that differ from them."""
        shared = options_of(self.help["train"])
        known = {o.key() for o in shared}
        for group in dict.fromkeys(o.group for o in shared):
            yield f".Ss {group}\n.Bl -tag -width Ds"
            for o in shared:
                if o.group == group:
                    yield from self.option(o)
            yield ".El"
        for name, lines in self.help.items():
            own = [o for o in options_of(lines) if o.key() not in known]
            if own:
                yield f".Ss Options of trireme {name}\n.Bl -tag -width Ds"
                for o in own:
                    yield from self.option(o, name)
                yield ".El"

    def page(self):
        for name in "synopsis", "commands", "options":
            text = "\n".join(line for line in getattr(self, name)() if line)
            self.template = self.template.replace(f"@{name.upper()}@", text)
        if self.about:
            sys.exit(f"manual.py: @about {', '.join(self.about)}: help has no such name")
        return self.template.rstrip("\n")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as template:
        print(Manual(template.read(), sys.argv[2]).page())
