"""Names that make an agent, an editor, a shell or git execute or obey: one table for walls, prompt and docs.

Theory of operation. A script may write the workspace, and other programs believe what lies there. So what has one of
these names is read-only while a script runs, at any depth; what a script makes anew under one is moved away after it.
A folder can also be guarded for what it holds: a virtual environment, a skill, the insides of a git repository.

The guard asks about every name in a workspace, a hundred thousand of them. So a name is looked up in one set; only one
that begins as a family does is compared with one expression for all families.

Not in the table is `.env`. Gemini's command line and autoenv obey it; but it is above all a file of plain data, which
scripts that set something up write and other programs only read, under names without end (`.env.local`, `.env.test`).
"""

from __future__ import annotations

import re
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
        .git .gitmodules .gitconfig .lfsconfig .githooks .git-hooks .husky .pre-commit-config.yaml
        .pre-commit-config.yml .pre-commit-hooks.yaml prek.toml .lefthook .lefthook-local hk.pkl hk.local.pkl
        captainhook.json captainhook.config.json .overcommit.yml .local-overcommit.yml .rusty-hook.toml
        rusty-hook.toml hookman.toml .hooks.yml .hooks.yaml grumphp.yml grumphp.yml.dist grumphp.yaml
        grumphp.yaml.dist .jj .hg .svn .bzr .sl .pijul
        """.split()
    ),
    "pipelines of forges": frozenset(
        """
        .gitlab-ci.yml .gitlab-ci.yaml .circleci .travis.yml .travis.yaml .drone.yml .drone.yaml .drone.star
        .drone.jsonnet .woodpecker .woodpecker.yml .woodpecker.yaml .buildkite .cirrus.yml .cirrus.yaml .cirrus.star
        .semaphore .appveyor.yml appveyor.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines
        bitbucket-pipelines.yml jenkinsfile codemagic.yaml bitrise.yml .build.yml .builds .tekton .teamcity
        .space.kts buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml cloudbuild.json
        """.split()
    ),
    "instructions and settings of agents": frozenset(
        """
        .claude.json .claude-plugin .agent .codex-plugin .cursor-plugin .windsurf
        .roo .roomodes .kilo .kilocode .kilocodemodes .continuerc.json
        .goosehints .kiro .amazonq .junie .augment-guidelines .trae .trae-cn
        .crush .openhands .aider .rules .mcp.json mcp.json .mcp opencode.json opencode.jsonc crush.json .crush.json
        gptme.toml gptme.local.toml codebuff.json firebender.json rulesync.jsonc conductor.json .pr_agent.toml
        claude.md claude.local.md agents.md agents.local.md agents.override.md agent.md .agent.md .agents.md gemini.md
        gemini.local.md qwen.md warp.md crush.md crush.local.md jules.md codex.md codebuddy.md iflow.md grok.md
        replit.md soul.md heartbeat.md
        .adal .amp .antigravity .bob .codebuddy .commandcode .cortex .forge .iflow .kode .lingma .mcpjam .mux .neovate
        .openclaw .pi .pochi .qoder .qodo .ruler .vibe .zencoder
        .ai .aiassistant .aide .bito .blackbox .codebuff .codegpt .codeium .cody .conductor .deepagents .devin
        .firebender .gptme .grok .hermes .jules .kimi .letta .mcpjam .plandex .plandex-v2 .refact .rovodev .rulesync
        .serena .sourcegraph .specify .stagewise .tabby .tabnine .taskmaster .void .warp
        .cursorignore .cursorindexingignore .aiignore .aiexclude .augmentignore .clineignore .codeiumignore
        .continueignore .copilotignore .geminiignore .gooseignore .kilocodeignore .qwenignore .rooignore
        copilot-instructions.md
        """.split()
    ),
    "settings of editors": frozenset(
        """
        .vscode .idea .fleet .zed .nova .vs .devcontainer .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .lvimrc
        _vimrc .gvimrc .vim .dir-locals.el .dir-locals-2.el .emacs .emacs.d .nano .nanorc .kakrc .helix .theia
        _exrc _gvimrc .local.vimrc .nvim .lazy.lua .ycm_extra_conf.py .emacs.desktop .kateproject .kateproject.build
        .lite_project.lua .lapce .externaltoolbuilders
        .idx .gitpod.yml .gitpod.yaml .replit .codesandbox .stackblitzrc .bolt devfile.yaml .devfile.yaml
        """.split()
    ),
    "start-up files of shells": frozenset(
        """
        .envrc .autoenv .autoenv.zsh .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
        .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .inputrc .direnv .autoenv.fish
        .tool-versions .mise .rtx .prototools .vfox.toml .pkgx.yaml .pkgx.yml .flox activate-hermit
        .rvmrc .ruby-gemset .ruby-env .rbenv-vars .versions.conf .shadowenv.d .autoenv_leave.zsh .nvmrc .sdkmanrc
        """.split()
    ),
    "start-up files of interpreters": frozenset(
        """
        .pdbrc .irbrc irb.rc _irbrc $irbrc .pryrc .byebugrc .rdbgrc .rdbgrc.rb .rdebugrc .perldb perldb.ini
        .rprofile .renviron .rdata .ghci .iex.exs .erlang .ocamlinit .utoprc .gdbinit .gdbearlyinit .lldbinit
        .octaverc startup.m sitecustomize.py usercustomize.py
        """.split()
    ),
    "settings of package managers": frozenset(
        """
        .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs .pnp.js .pnp.loader.mjs .bundle .cargo
        rust-toolchain rust-toolchain.toml .mvn .jvmopts .sbtopts .bazelrc .bazeliskrc .bazelversion bunfig.toml
        uv.toml nuget.config
        """.split()
    ),
    "skills and skillkit's settings": frozenset("skillkit.toml skills.lock".split()),
    "packages that other folders share": frozenset((".pnpm",)),
}
ENDINGS = (".code-workspace", ".sublime-project", ".agent.toml")
# Names that have no end, as for each mode of an agent, each environment of mise, each language with a version.
FAMILIES = re.compile(
    r"""
      \.?lefthook(-local)?\.(ya?ml|toml|jsonc?)
    | \.?(mise|rtx)(\..+)?\.toml
    | \.?simple-git-hooks\.(json|[cm]?[jt]s)
    | \.?nano-staged\.(json|[cm]?js)
    | (\.lintstagedrc|\.huskyrc|\.aider)(\..+)?
    | (lint-staged|husky)\.config\.[cm]?[jt]s
    | \.[a-z0-9_]+rules(-.+|\.(md|local|json|ya?ml))?
    | \.[a-z0-9-]+-version
    """,
    re.VERBOSE | re.DOTALL,
)
BEGINNINGS = (".", "mise.", "rtx.", "lefthook", "simple-git-hooks.", "nano-staged.", "lint-staged.", "husky.")
"""Of the families; every other name is not compared with them."""
AGENTS_FOLDER = "agents"
"""Where agent files are kept; one that lies elsewhere is guarded while a chat uses it."""
# Of these folders only what is named here, and what the table of hosts names.
PARTLY: dict[str, frozenset[str]] = {
    ".github": frozenset(
        """
        copilot-instructions.md copilot instructions prompts chatmodes agents hooks extensions plugin lsp.json
        workflows actions
        """.split()
    ),
    ".config": frozenset("mise irb pry direnv fish nushell powershell git nvim helix zed zellij".split()),
    ".gitlab": frozenset(("duo", "ci")),
    ".gitea": frozenset(("workflows",)),
    ".forgejo": frozenset(("workflows", "actions")),
    ".yarn": frozenset("releases plugins sdks".split()),
}
# Of these folders what has such a name.
FAMILIES_INSIDE = {
    AGENTS_FOLDER: re.compile(r".*\.toml", re.DOTALL),
    "mise": re.compile(r"config(\..+)?\.toml|conf\.d", re.DOTALL),
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
    if plain in NAMES or plain.endswith(ENDINGS):
        return True
    return plain.startswith(BEGINNINGS) and FAMILIES.fullmatch(plain) is not None


def is_obeyed_folder(name: str) -> bool:
    """Whether something in a folder of this name is guarded because it lies there."""
    plain = _plain_name(name)
    return plain in INSIDE or plain in FAMILIES_INSIDE or plain == SKILLS_FOLDER


def guarded_inside(folder_name: str, names: Collection[str]) -> Iterator[str]:
    """Of the entries of a folder that is not guarded itself, those that are guarded because they lie in it."""
    folder = _plain_name(folder_name)
    if listed := INSIDE.get(folder):
        yield from (name for name in names if _plain_name(name) in listed)
    if family := FAMILIES_INSIDE.get(folder):
        yield from (name for name in names if family.fullmatch(_plain_name(name)))


def of_repository(names: Collection[str]) -> Iterator[str]:
    """Of a folder with these entries, those by which git would execute or obey, if git takes it for a repository."""
    plain = {_plain_name(name): name for name in names}
    if any(marks <= plain.keys() for marks in REPOSITORY_MARKS):
        yield from (name for each, name in plain.items() if each in OF_REPOSITORY)


def sentence_of_groups() -> str:
    """What a script cannot change, in words."""
    first = [group for group in GROUPS if not group.startswith("packages")]
    return f"{', '.join(first[:-1])}, and {first[-1]}"
