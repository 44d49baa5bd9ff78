"""Names that make an agent, an editor, a shell or git execute or obey: one table for walls, prompt and docs.

Theory of operation. A script may write the workspace, and other programs believe what lies there. So what has one of
these names is read-only while a script runs, at any depth; what a script makes anew under one is moved away after it.
A folder can also be guarded for what it holds: a virtual environment, a skill, the insides of a git repository.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from skillkit.core.paths.hosts import guarded_first_names

__all__ = [
    "AGENTS_FOLDER",
    "ENVIRONMENT_MARK",
    "GROUPS",
    "SKILLS_FOLDER",
    "SKILL_MARK",
    "guarded_inside",
    "is_guarded_name",
    "is_obeyed_folder",
    "of_repository",
    "sentence_of_groups",
]

GROUPS: dict[str, frozenset[str]] = {
    "git and its hooks": frozenset(
        """
        .git .gitmodules .gitconfig .githooks .husky .pre-commit-config.yaml .pre-commit-config.yml
        .pre-commit-hooks.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook-local.yml
        lefthook-local.yaml lefthook.toml lefthook.json .lefthook.toml .lefthook.json .lefthook .lefthook-local
        .git-hooks .simple-git-hooks.json .simple-git-hooks.js .simple-git-hooks.cjs simple-git-hooks.json
        simple-git-hooks.js simple-git-hooks.cjs captainhook.json .overcommit.yml .jj .hg .svn .bzr .sl .pijul
        """.split()
    ),
    "instructions and settings of agents": frozenset(
        """
        .claude.json .claude-plugin .agent .codex-plugin .cursor-plugin .windsurf
        .roo .roorules .roomodes .kilocode .kilocodemodes .continuerc.json
        .goosehints .kiro .amazonq .junie .augment-guidelines .augmentrules .trae
        .crush .openhands .aider.conf.yml .aider .rules .mcp.json mcp.json opencode.json
        opencode.jsonc crush.json .crush.json claude.md claude.local.md agents.md agents.override.md agent.md gemini.md
        qwen.md warp.md crush.md jules.md
        .adal .amp .antigravity .bob .codebuddy .commandcode .cortex .forge .iflow .kode .lingma .mcpjam .mux .neovate
        .openclaw .pi .pochi .qoder .qodo .ruler .vibe .zencoder
        .cursorrules .windsurfrules .cursorignore .codexrules copilot-instructions.md
        """.split()
    ),
    "settings of editors": frozenset(
        """
        .vscode .idea .fleet .zed .nova .vs .devcontainer .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .lvimrc
        _vimrc .gvimrc .vim .dir-locals.el .dir-locals-2.el .emacs .emacs.d .nano .nanorc .kakrc .helix .theia
        """.split()
    ),
    "start-up files of shells": frozenset(
        """
        .envrc .autoenv .autoenv.zsh .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
        .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .inputrc .direnv .autoenv.fish
        .tool-versions mise.toml .mise.toml mise.local.toml .mise.local.toml .mise .rtx.toml
        .rvmrc .versions.conf .shadowenv.d .autoenv_leave.zsh
        .python-version .ruby-version .node-version .nvmrc .java-version .sdkmanrc
        """.split()
    ),
    "start-up files of interpreters": frozenset(
        """
        .pdbrc .irbrc .pryrc .byebugrc .rprofile .renviron .ghci .iex.exs .ocamlinit .gdbinit .lldbinit .octaverc
        sitecustomize.py usercustomize.py
        """.split()
    ),
    "settings of package managers": frozenset(
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs .bundle .cargo .mvn .bazelrc bunfig.toml".split()
    ),
    "skills and skillkit's settings": frozenset("skillkit.toml skills.lock".split()),
    "packages that other folders share": frozenset((".pnpm",)),
}
ENDINGS = (".code-workspace", ".sublime-project", ".agent.toml")
AGENTS_FOLDER, AGENT_ENDING = "agents", ".toml"
"""Where agent files are kept; one that lies elsewhere is guarded while a chat uses it."""
# Of these folders only what is named here, and what the table of hosts names.
PARTLY: dict[str, frozenset[str]] = {
    ".github": frozenset(
        "copilot-instructions.md instructions prompts chatmodes agents hooks workflows actions".split()
    ),
    ".config": frozenset("mise mise.toml fish git nvim zellij lefthook.yml lefthook.yaml".split()),
    ".gitlab": frozenset(("duo",)),
    ".yarn": frozenset("releases plugins sdks".split()),
}
OF_HOSTS = guarded_first_names()
INSIDE = {folder: names | OF_HOSTS.get(folder, frozenset()) for folder, names in PARTLY.items()}
NAMES = frozenset(name for names in GROUPS.values() for name in names) | (OF_HOSTS.keys() - INSIDE.keys())
ENVIRONMENT_MARK = "pyvenv.cfg"
"""What tells a virtual environment, which is guarded as a whole."""
SKILL_MARK, SKILLS_FOLDER = "skill.md", "skills"
"""What tells a skill below a folder of this name, and is guarded as a whole."""
REPOSITORY_MARKS = (frozenset(("head", "objects", "refs")), frozenset(("head", "commondir")))
"""What makes git take a folder for a repository, whatever its name; the second takes the rest from another folder."""
OF_REPOSITORY = frozenset("head commondir config config.worktree gitdir hooks info modules worktrees".split())


def _plain_name(name: str) -> str:
    """As file systems compare names that make no difference of case: without characters that they do not count."""
    if name.isascii():
        return name.lower()
    apart = unicodedata.normalize("NFD", name)
    return "".join(each for each in apart if unicodedata.category(each) != "Cf").casefold()


def is_guarded_name(name: str) -> bool:
    """Whatever its case: some file systems make no difference."""
    plain = _plain_name(name)
    return plain in NAMES or plain.endswith(ENDINGS)


def is_obeyed_folder(name: str) -> bool:
    """Whether something in a folder of this name is guarded because it lies there."""
    plain = _plain_name(name)
    return plain in INSIDE or plain in (AGENTS_FOLDER, SKILLS_FOLDER)


def guarded_inside(folder_name: str, names: Collection[str]) -> Iterator[str]:
    """Of the entries of a folder that is not guarded itself, those that are guarded because they lie in it."""
    folder = _plain_name(folder_name)
    if listed := INSIDE.get(folder):
        yield from (name for name in names if _plain_name(name) in listed)
    if folder == AGENTS_FOLDER:
        yield from (name for name in names if _plain_name(name).endswith(AGENT_ENDING))


def of_repository(names: Collection[str]) -> Iterator[str]:
    """Of a folder with these entries, those by which git would execute or obey, if git takes it for a repository."""
    plain = {_plain_name(name): name for name in names}
    if any(marks <= plain.keys() for marks in REPOSITORY_MARKS):
        yield from (name for each, name in plain.items() if each in OF_REPOSITORY)


def sentence_of_groups() -> str:
    """What a script cannot change, in words."""
    first = [group for group in GROUPS if not group.startswith("packages")]
    return f"{', '.join(first[:-1])}, and {first[-1]}"
