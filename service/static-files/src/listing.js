const body = document.querySelector("tbody"), heads = [...document.querySelectorAll("th")];
heads.forEach((head, column) => {
  head.dataset.sort = "";
  head.onclick = () => {
    const up = head.ariaSort !== "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.ariaSort = up ? "ascending" : "descending";
    const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const order = (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true });
    const rows = [...body.rows].sort((a, b) => up ? order(a, b) : order(b, a));
    body.append(...rows);
  };
});
