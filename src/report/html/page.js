(function(){
"use strict";
var root=document.documentElement,nav=document.querySelectorAll("nav a"),parts=document.querySelectorAll("section.policy"),tip=document.getElementById("tip");
function show(id){
  var found=false;
  parts.forEach(function(p){var on=p.id===id;p.classList.toggle("on",on);found=found||on});
  if(!found&&parts.length){id=parts[parts.length-1].id;parts[parts.length-1].classList.add("on")}
  nav.forEach(function(a){if(a.hash==="#"+id){a.setAttribute("aria-current","true")}else{a.removeAttribute("aria-current")}});
}
root.classList.add("js");
show(location.hash.slice(1));
nav.forEach(function(a){a.addEventListener("click",function(e){e.preventDefault();history.replaceState(null,"",a.hash);show(a.hash.slice(1))})});
addEventListener("hashchange",function(){show(location.hash.slice(1))});
addEventListener("beforeprint",function(){document.querySelectorAll("details").forEach(function(d){d.open=true})});
// A title element would cover every point of a figure with one and the same tooltip.
document.querySelectorAll("svg[role=img]").forEach(function(s){
  var t=s.querySelector(":scope > title");
  if(t){s.setAttribute("aria-label",t.textContent);s.removeAttribute("aria-labelledby");t.remove()}
});
function place(e,text){
  tip.textContent=text;tip.style.display="block";
  var w=tip.offsetWidth,x=e.clientX+14;
  tip.style.left=(x+w>innerWidth?e.clientX-w-10:x)+"px";tip.style.top=(e.clientY+14)+"px";
}
document.querySelectorAll("svg[data-heat]").forEach(function(s){
  var n=s.dataset.heat.split(" ").map(Number),rows=s.querySelectorAll("[data-v]");
  s.addEventListener("mousemove",function(e){
    var p=new DOMPoint(e.clientX,e.clientY).matrixTransform(s.getScreenCTM().inverse());
    var c=Math.floor((p.x-n[0])/n[1]),r=Math.floor((p.y-n[2])/n[3]),row=rows[r];
    if(!row||c<0||2*c+2>row.dataset.v.length){tip.style.display="none";return}
    var v=parseInt(row.dataset.v.substr(2*c,2),16)/2.55;
    place(e,row.dataset.l+"  "+(c*n[4]/1000).toFixed(2)+"\u2013"+((c+1)*n[4]/1000).toFixed(2)+" s: "+v.toFixed(0)+" %");
  });
  s.addEventListener("mouseleave",function(){tip.style.display="none"});
});
})();
