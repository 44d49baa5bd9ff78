"""What the page shows: the whole question in order, hostile text as text, and large things in parts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.approving import ASKING, FILES
from support.page_visits import Visit, asked, prompt_of, text_of, visiting
from support.running import made_manager

from skillkit import OptionRequest, SkillManager, World
from skillkit.core.paths.trees import remove_tree
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore
from skillkit.core.values.questions import OPTIONS, SINGLE_USE, Option, PromptCommand, RiskFlag

HOSTILE = """</pre></code><script>alert(1)</script><img src=x onerror=alert(2)>"'><button name=option value=yes_once>Yes</button>\u202etxt\u200b\x1b[2J"""


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillManager]:
    frontmatter = "name: demo\ndescription: A <b>bold</b> demo.\n"
    files = {"scripts/run.sh": "echo ran\n", "scripts/fail.sh": "exit 3\n"}
    with made_manager(tmp_path_factory.mktemp("skills"), files, frontmatter=frontmatter, session_id="s-1") as made:
        made.execute_skill_script("demo", "run")
        made.execute_skill_script("demo", "fail")
        yield made


@pytest.fixture(scope="module")
def visit(manager: SkillManager) -> Iterator[Visit]:
    with visiting(manager.state_dir, manager=manager) as made:
        yield made


class Elements(HTMLParser):
    """Every tag of a page, as a browser would see it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def test_a_request_shows_everything_in_the_order_a_person_needs(visit: Visit) -> None:
    asked(visit.world, "ordered", prompt_of(stdin='{"to": "you"}'))
    said = text_of(visit.client.get("/requests/ordered").text.partition("<main")[2])
    parts = [
        "May this script run?",
        "scripts/run.sh --all",
        "input: ",
        "demo",
        "/skills/demo",
        "Why asked",
        "Risks",
        "Talks to somebody.",
        "New",
        "0 added lines in 1 file (1 changed)",
        "+echo hi",
        "Changed",
        "-echo ho",
        "+echo hi",
        "Arguments",
        "--all",
        "to",
        '"you"',
        "Walls",
        "It cannot use the network.",
        "Every file of the skill",
        "Source",
        "echo hi",
        "Digest",
        "d" * 64,
        "session-1",
        "Yes once",
        "this time only",
        "Yes in this session",
        "this skill, until it changes",
        "No",
        "nothing runs",
    ]
    at = 0
    for part in parts:
        found = said.find(part, at)
        assert found >= 0, f"{part!r} is missing, or not in its place, in {said}"
        at = found


def test_three_buttons_none_of_them_chosen_beforehand(visit: Visit) -> None:
    asked(visit.world, "buttons")
    page = visit.client.get("/requests/buttons").text
    buttons = [each for each in Elements(page).named("button") if each.get("name") == "option"]
    assert [each["value"] for each in buttons] == ["yes_once", "yes_in_session", "no"]
    assert "autofocus" not in page
    assert not any("disabled" in each for each in buttons), "without JavaScript all of them work"


def test_where_every_run_is_asked_about_no_button_promises_more(visit: Visit) -> None:
    for name, single_use in (("covering", ["yes_once"]), ("single", ["yes_once", "yes_in_session"])):
        context = {**prompt_of().to_context(), SINGLE_USE: single_use}
        visit.world.open(OptionRequest(name, "Run it?", "Policy asks.", OPTIONS, context, "session-1"))
    covering, single = (text_of(visit.client.get(f"/requests/{name}").text) for name in ("covering", "single"))
    assert "Yes in this sessionthis skill, until it changes" in covering
    assert "Yes in this sessionthis time only" in single
    assert "until it changes" not in single


def test_hostile_text_stays_text_everywhere(visit: Visit) -> None:
    hostile = prompt_of(
        HOSTILE,
        skill=HOSTILE,
        origin=HOSTILE,
        reasons=(HOSTILE,),
        argv=(HOSTILE,),
        stdin=json.dumps({HOSTILE: HOSTILE}),
        walls=(HOSTILE,),
        digest=HOSTILE,
        risks=(RiskFlag(HOSTILE, HOSTILE, HOSTILE, 1),),
        changes=None,
    )
    visit.world.open(
        OptionRequest(
            "hostile",
            HOSTILE,
            HOSTILE,
            (Option("yes", HOSTILE), Option("no", "No")),
            hostile.to_context(),
            HOSTILE[:200],
        )
    )
    visit.world.open(OptionRequest("hostile-general", HOSTILE, HOSTILE, (Option("no", HOSTILE),), {HOSTILE: [HOSTILE]}))
    for path in ("/", "/requests/hostile", "/requests/hostile-general", "/requests/hostile/source/1"):
        page = visit.client.get(path).text
        elements = Elements(page)
        assert [each["src"] for each in elements.named("script")] == ["/static/page.js"]
        assert elements.named("img") == []
        assert all(each.get("value") != "yes_once" for each in elements.named("button"))
        assert not {name for _, attributes in elements.tags for name in attributes if name.startswith("on")}
        assert not set(page) & set("\u202e\u200b\x1b"), "what hides or reorders is written out"
    assert "\\u202e" in visit.client.get("/requests/hostile").text


def test_hidden_characters_are_set_apart_from_text_that_looks_like_them(visit: Visit) -> None:
    asked(visit.world, "hidden", prompt_of("a\u202eb \\u202e c\n"))
    page = visit.client.get("/requests/hidden").text
    assert page.count('<mark class="unseen">\\u202e</mark>') == 1


def test_a_question_about_something_else_shows_too(visit: Visit) -> None:
    options = (Option("green", "Paint it green"), Option("blue", "Blue"), Option("a/b?c", "Both"))
    visit.world.open(
        OptionRequest(
            "a/question?", "Which colour?", "It must\nmatch.", options, {"room": {"size": 3, "doors": [1, None]}}
        )
    )
    page = visit.client.get("/requests/a%2Fquestion%3F")
    said = text_of(page.text)
    assert page.status_code == 200
    assert all(
        part in said for part in ("Which colour?", "It must match.", "Paint it green", "room", "size", "doors", "null")
    )
    assert visit.client.get(re.findall(r'href="(/requests/a[^"]+)"', visit.client.get("/").text)[0]).status_code == 200
    assert visit.answer("a%2Fquestion%3F", "a/b?c", visit.server.access.form_token("x", "y")).status_code == 403


def test_arguments_that_would_lose_something_as_a_tree_stay_text(visit: Visit) -> None:
    asked(visit.world, "twice-named", prompt_of(stdin='{"to": "you", "to": "evil"}'))
    page = visit.client.get("/requests/twice-named").text
    assert "you" in text_of(page)
    assert 'class="tree"' not in page
    asked(visit.world, "deep", prompt_of(stdin="[" * 900 + "]" * 900))
    assert visit.client.get("/requests/deep").status_code == 200


@pytest.mark.parametrize("inside", ["deep", "wide", "plain"])
def test_whatever_a_question_carries_it_can_be_shown(visit: Visit, inside: str) -> None:
    deep: object = "bottom"
    for _ in range(300):
        deep = [deep]
    carried = {"deep": deep, "wide": list(range(20_000)), "plain": {"a": 1}}[inside]
    visit.world.open(OptionRequest(f"carries-{inside}", "Shown?", "", (Option("no", "No"),), {"carried": carried}))
    page = visit.client.get(f"/requests/carries-{inside}")
    assert page.status_code == 200
    assert ('class="tree"' in page.text) is (inside == "plain")
    assert {"deep": "bottom", "wide": "19999", "plain": "1"}[inside] in page.text
    assert visit.answer(f"carries-{inside}", "no").status_code == 303


def test_a_script_of_ten_thousand_lines_comes_in_parts(visit: Visit) -> None:
    source = "".join(f"print({number})  # <{number}>\n" for number in range(1, 10_001))
    commands = (PromptCommand("scripts/long.py", (), "", source),)
    risks = (RiskFlag("network", "Far down.", "scripts/long.py", 9_000),)
    asked(visit.world, "long", prompt_of(commands=commands, risks=risks))
    began = time.monotonic()
    page = visit.client.get("/requests/long").text
    assert time.monotonic() - began < 10
    assert len(page) < 200_000
    assert "The first 400 of 10,000 lines" in text_of(page)
    flagged = re.search(r'href="([^"]+/source/1\?start=8980)#source-1-9000"', page)
    assert flagged is not None
    part = visit.client.get(flagged[1]).text
    assert 'id="source-1-9000"' in part
    assert "Lines 8,980 to 9,379 of 10,000" in text_of(part), "what leads to a risk is shown with it"
    assert "# <9379>" in text_of(part.replace("<span", " <span"))
    for start in ("0", "-5", "99999999", "x", "9" * 400):
        assert visit.client.get(f"/requests/long/source/1?start={start}").status_code == 200
    assert visit.client.get("/requests/long/source/2").status_code == 404


def test_one_endless_line_is_shown_whole_and_without_colour(visit: Visit) -> None:
    commands = (PromptCommand("scripts/line.py", (), "", "x = '" + "a" * 150_000 + "'"),)
    asked(visit.world, "line", prompt_of(commands=commands))
    page = visit.client.get("/requests/line").text
    assert "a" * 150_000 in page


def test_two_hundred_requests_are_listed_quickly(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit:
        for number in range(200):
            asked(visit.world, f"many-{number:03}", prompt_of("echo\n" * 1_000))
        began = time.monotonic()
        page = visit.client.get("/").text
        assert time.monotonic() - began < 10
        assert "200 requests waiting" in text_of(page)
        assert page.count('class="card group"') == 1, "all are about the same script"
        assert (page.count('id="r-many-'), "150 more of these" in text_of(page)) == (50, True)
        assert len(page) < 300_000


def test_the_list_shows_what_would_run_with_its_arguments(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit:
        for number in range(3):
            asked(visit.world, f"r{number}", prompt_of(argv=(f"--page={number}", "a b")))
        asked(visit.world, "alone", prompt_of(skill="another", argv=("x\ny",)))
        said = text_of(visit.client.get("/").text)
        for number in range(3):
            assert f'scripts/run.sh --page={number} "a b"' in said
        assert r'scripts/run.sh "x\ny" of another' in said


def test_every_file_of_the_skill_can_be_read_and_searched_from_the_question(tmp_path: Path) -> None:
    files = {**FILES, "lib/help.py": "import os\n" * 500 + "needle = 1\n", "logo.png": "\0"}
    with made_manager(tmp_path, files, policy=ASKING, session_id="s") as manager:
        request = manager.prepare_skill_script("demo", "run").request
    assert request is not None
    with visiting(tmp_path / "state") as visit:
        visit.world.open(request)
        listed = visit.client.get(f"/requests/{request.id}/files").text
        names = re.findall(r"<code>([^<]+)</code></a>", listed)
        assert names[0] == "scripts/run.sh", "what would run stands first"
        assert {"SKILL.md", "lib/help.py", "lib/data.txt", "scripts/other.sh", "logo.png"} <= {*names}
        number = names.index("lib/help.py") + 1
        page = text_of(visit.client.get(f"/requests/{request.id}/files/{number}?find=NEEDLE").text)
        assert "1 line with NEEDLE" in page
        assert "Lines 1 to 400 of 501." in page
        later = text_of(visit.client.get(f"/requests/{request.id}/files/{number}?start=401").text)
        assert "needle = 1" in later
        assert (
            "a binary file of 1 bytes"
            in visit.client.get(f"/requests/{request.id}/files/{names.index('logo.png') + 1}").text
        )
        assert visit.client.get(f"/requests/{request.id}/files/{len(names) + 1}").status_code == 404
        remove_tree(tmp_path / "state" / "snapshots")
        assert "not here any more" in text_of(visit.client.get(f"/requests/{request.id}/files").text)


def test_an_empty_world_says_what_will_come(tmp_path: Path) -> None:
    with visiting(tmp_path / "new") as visit:
        told = text_of(visit.client.get("/").text)
        assert "Nothing waits for you" in told
        assert "skillkit run SKILL SCRIPT --wait where it has no terminal to ask on" in told
        assert "Nothing was asked yet" in text_of(visit.client.get("/history").text)
        assert "Nothing ran" in text_of(visit.client.get("/audit").text)
        assert "without skills" in text_of(visit.client.get("/skills").text)
        assert visit.client.get("/skills/demo").status_code == 404
        assert not (tmp_path / "new").exists(), "looking makes no file"


def test_the_history_names_answer_and_channel(visit: Visit) -> None:
    asked(visit.world, "remembered")
    visit.world.answer("remembered", "yes_in_session", "cli")
    said = text_of(visit.client.get("/history").text)
    assert "Run remembered?Yes in this session-cli" in said.replace(" Run", "Run").replace("UTC", "")


@pytest.mark.usefixtures("each_database")
def test_the_audit_is_read_from_whichever_database_the_world_has(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for kind in ("started", "finished"):
        AuditLog(store).append(kind, {"skill": "pdf", "script": "scripts/read.sh", "exit_code": 0, "started": 1})
    store.close()
    with visiting(tmp_path) as visit:
        said = text_of(visit.client.get("/audit").text)
        assert "Intact: 2 records" in said
        assert "scripts/read.sh" in said
        asked(visit.world, "shared")
        assert text_of(visit.client.get("/").text).startswith("(1) Pending")
        assert visit.answer("shared", "no").status_code == 303
        assert "Run shared?" in text_of(visit.client.get("/history").text)


def test_the_audit_shows_runs_their_outcome_and_the_chain(visit: Visit) -> None:
    said = text_of(visit.client.get("/audit").text)
    assert "Intact: 4 records" in said
    assert all(part in said for part in ("Succeeded", "Failed", "exit 3", "scripts/fail.sh", "s-1"))
    failed = text_of(visit.client.get("/audit", params={"outcome": "failed"}).text)
    rows = failed.partition("OutcomeTookSession")[2]
    assert "scripts/fail.sh" in rows
    assert "scripts/run.sh" not in rows
    assert "Nothing fits" in text_of(visit.client.get("/audit", params={"skill": "<x>"}).text)


def test_a_broken_chain_is_named(manager: SkillManager, tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    source = StateStore(manager.state_dir)
    with source.connection() as theirs, store.connection() as ours:
        theirs.backup(ours)
    source.close()
    with store.connection() as connection:
        connection.execute("drop trigger audit_is_never_changed")
        connection.execute("update audit set fields = '{}' where seq = 2")
    store.close()
    with visiting(tmp_path) as visit:
        assert "Broken: Record 2 was altered" in text_of(visit.client.get("/audit").text)


def test_a_skill_shows_its_scripts_its_trust_and_its_problems(visit: Visit) -> None:
    listed = visit.client.get("/skills").text
    assert "<b>" not in listed
    assert "A &lt;b&gt;bold&lt;/b&gt; demo." in listed
    said = text_of(visit.client.get("/skills/demo").text)
    assert all(
        part in said
        for part in ("scripts/run.sh", "scripts/fail.sh", "Not trusted for good", "contains '<' or '>'", "Do it.")
    )


@pytest.mark.parametrize(
    "name",
    ["..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "%2fetc", "demo%2f..%2f..%2fstate", "demo%00", "demo/scripts/run.sh"],
)
def test_a_skills_name_never_becomes_a_path(visit: Visit, name: str) -> None:
    answer = visit.client.get(f"/skills/{name}")
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert visit.client.get(f"/static/{name}").status_code == 404


def test_a_world_whose_file_is_no_database_is_an_error_that_says_so(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit:
        (tmp_path / "state.sqlite3").write_text("this is not a database, and it is long enough to be looked at" * 50)
        answer = visit.client.get("/")
        assert answer.status_code == 503
        assert "is not a SQLite file" in text_of(answer.text)
        assert answer.headers["x-frame-options"] == "DENY"


def test_the_page_is_served_from_whichever_world_it_was_given(tmp_path: Path) -> None:
    with World(tmp_path / "other") as other, visiting(tmp_path / "one") as visit:
        asked(other, "elsewhere")
        assert visit.client.get("/requests/elsewhere").status_code == 404
